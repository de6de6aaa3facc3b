//! Values of every type that serde knows arrive as they were returned, through the codec, `jsonb`
//! and back; or they are refused where they are returned.

use std::collections::{BTreeMap, HashMap};

use pgflow::__private::{Outputs, RawValue, codec, finish};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, TestRunner};
use serde::{Deserialize, Serialize};
use sqlx::{PgPool, types::Json};

use crate::support::TestDb;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Unit;
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Newtype(f64);
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Tuple(u8, String);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum Variants {
    Unit,
    Newtype(f32),
    Tuple(i64, char),
    Struct { text: String, nothing: () },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", content = "value")]
enum Adjacent {
    Float(f64),
    Whole(u64),
}

/// Told apart by nothing but how a number is written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
enum Untagged {
    Whole(i64),
    Natural(u64),
    Float(f64),
    Text(String),
}

/// Bytes that are written as bytes.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(from = "Vec<u8>")]
struct Bytes(Vec<u8>);

impl Serialize for Bytes {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl From<Vec<u8>> for Bytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Everything {
    flag: bool,
    signed: (i8, i16, i32, i64, i128),
    unsigned: (u8, u16, u32, u64, u128),
    floats: Vec<f64>,
    singles: Vec<f32>,
    letter: char,
    text: String,
    bytes: Bytes,
    option: Option<f64>,
    #[expect(
        clippy::option_option,
        reason = "it is one of the types that are tried"
    )]
    doubled: Vec<Option<Option<u8>>>,
    nothings: Vec<Option<()>>,
    unit: (),
    unit_struct: Unit,
    newtype: Newtype,
    tuple: Tuple,
    variants: Vec<Variants>,
    adjacent: Adjacent,
    untagged: Vec<Untagged>,
    by_text: HashMap<String, f64>,
    by_number: BTreeMap<i64, u8>,
    by_flag: BTreeMap<bool, u8>,
    by_letter: BTreeMap<char, u8>,
}

impl Everything {
    /// Returns the reason for its refusal, if there is one.
    fn refusal(&self) -> Option<&'static str> {
        let texts = [&self.text, &self.tuple.1]
            .into_iter()
            .chain(self.by_text.keys());
        let mut texts = texts.chain(self.variants.iter().filter_map(|variant| match variant {
            Variants::Struct { text, .. } => Some(text),
            _ => None,
        }));
        let letters = self.variants.iter().filter_map(|variant| match variant {
            Variants::Tuple(_, letter) => Some(*letter),
            _ => None,
        });
        let mut letters = letters
            .chain([self.letter])
            .chain(self.by_letter.keys().copied());
        let floats = self
            .floats
            .iter()
            .chain(&self.option)
            .chain([&self.newtype.0]);
        let floats = floats.chain(self.by_text.values()).copied();
        let singles = self.singles.iter().copied();
        let singles = singles.chain(self.variants.iter().filter_map(|variant| match variant {
            Variants::Newtype(single) => Some(*single),
            _ => None,
        }));
        let mut floats = floats
            .chain(singles.map(f64::from))
            .chain(match self.adjacent {
                Adjacent::Float(float) => Some(float),
                Adjacent::Whole(_) => None,
            });
        if floats.any(|float| !float.is_finite()) {
            Some("NaN or infinite")
        } else if self.doubled.contains(&Some(None)) || self.nothings.contains(&Some(())) {
            Some("would read back as `None`")
        } else if texts.any(|text| text.contains('\0')) || letters.any(|letter| letter == '\0') {
            Some("U+0000")
        } else {
            None
        }
    }

    /// The same with the one change that `jsonb` makes: it has no negative zero.
    fn stored(mut self) -> Self {
        let floats = self
            .floats
            .iter_mut()
            .chain(&mut self.option)
            .chain([&mut self.newtype.0]);
        for float in floats.chain(self.by_text.values_mut()) {
            *float += 0.0;
        }
        for single in &mut self.singles {
            *single += 0.0;
        }
        for variant in &mut self.variants {
            if let Variants::Newtype(single) = variant {
                *single += 0.0;
            }
        }
        if let Adjacent::Float(float) = &mut self.adjacent {
            *float += 0.0;
        }
        for untagged in &mut self.untagged {
            if let Untagged::Float(float) = untagged {
                *float += 0.0;
            }
        }
        self
    }

    /// Tells floats apart that are equal, such as the two zeros.
    fn bits(&self) -> (Vec<u64>, Vec<u32>, String) {
        let floats = self.floats.iter().chain(&self.option);
        (
            floats.map(|float| float.to_bits()).collect(),
            self.singles.iter().map(|single| single.to_bits()).collect(),
            // The shortest text that reads back as the same float, for all others.
            format!("{:?} {:?} {:?}", self.newtype, self.variants, self.untagged),
        )
    }
}

fn float() -> impl Strategy<Value = f64> + Clone {
    prop_oneof![
        8 => any::<f64>().prop_filter("finite", |float| float.is_finite()),
        4 => (1_i32..10_000).prop_map(|n| f64::from(n) / 7.0),
        2 => prop::sample::select(vec![0.0, -0.0, 5e-324, f64::MAX, f64::MIN_POSITIVE, 1e15, 1e16, 1e19, 1.8e19, 1e20, 0.1 + 0.2]),
    ]
}

fn rarely_odd_float() -> impl Strategy<Value = f64> + Clone {
    prop_oneof![60 => float(), 1 => prop::sample::select(vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY])]
}

fn single() -> impl Strategy<Value = f32> + Clone {
    prop_oneof![
        8 => any::<f32>().prop_filter("finite", |single| single.is_finite()),
        2 => prop::sample::select(vec![0.0, -0.0, f32::MAX, f32::MIN_POSITIVE, 1e16, 1e17, 16_777_216.0]),
    ]
}

fn text() -> impl Strategy<Value = String> + Clone {
    prop_oneof![
        60 => any::<String>().prop_map(|text| text.replace('\0', "")),
        1 => Just("a\0b".to_owned()),
    ]
}

fn letter() -> impl Strategy<Value = char> + Clone {
    any::<char>().prop_map(|letter| if letter == '\0' { 'x' } else { letter })
}

fn everything() -> impl Strategy<Value = Everything> {
    use prop::collection::{btree_map, hash_map, vec};
    let variants = prop_oneof![
        Just(Variants::Unit),
        single().prop_map(Variants::Newtype),
        (any::<i64>(), letter()).prop_map(|(n, letter)| Variants::Tuple(n, letter)),
        text().prop_map(|text| Variants::Struct { text, nothing: () }),
    ];
    let untagged = prop_oneof![
        any::<i64>().prop_map(Untagged::Whole),
        ((1_u64 << 63)..).prop_map(Untagged::Natural),
        float().prop_map(Untagged::Float),
        letter().prop_map(|letter| Untagged::Text(letter.to_string())),
    ];
    let doubled = prop_oneof![
        20 => Just(None),
        20 => any::<u8>().prop_map(|n| Some(Some(n))),
        1 => Just(Some(None)),
    ];
    let nothings = prop_oneof![60 => Just(None), 1 => Just(Some(()))];
    let adjacent = prop_oneof![
        float().prop_map(Adjacent::Float),
        any::<u64>().prop_map(Adjacent::Whole)
    ];
    (
        (
            any::<bool>(),
            any::<(i8, i16, i32, i64, i128)>(),
            any::<(u8, u16, u32, u64, u128)>(),
        ),
        (
            vec(rarely_odd_float(), 0..8),
            vec(single(), 0..8),
            letter(),
            text(),
        ),
        (
            vec(any::<u8>(), 0..8),
            prop::option::of(float()),
            vec(doubled, 0..2),
            vec(nothings, 0..2),
        ),
        (
            float(),
            any::<u8>(),
            text(),
            vec(variants, 0..4),
            adjacent,
            vec(untagged, 0..4),
        ),
        (
            hash_map(text(), float(), 0..4),
            btree_map(any::<i64>(), any::<u8>(), 0..4),
            btree_map(any::<bool>(), any::<u8>(), 0..2),
            btree_map(letter(), any::<u8>(), 0..4),
        ),
    )
        .prop_map(|(a, b, c, d, e)| Everything {
            flag: a.0,
            signed: a.1,
            unsigned: a.2,
            floats: b.0,
            singles: b.1,
            letter: b.2,
            text: b.3,
            bytes: Bytes(c.0),
            option: c.1,
            doubled: c.2,
            nothings: c.3,
            unit: (),
            unit_struct: Unit,
            newtype: Newtype(d.0),
            tuple: Tuple(d.1, d.2),
            variants: d.3,
            adjacent: d.4,
            untagged: d.5,
            by_text: e.0,
            by_number: e.1,
            by_flag: e.2,
            by_letter: e.3,
        })
}

async fn through_jsonb(pool: &PgPool, values: &[Box<RawValue>]) -> Vec<Box<RawValue>> {
    let values: Vec<_> = values.iter().map(Json).collect();
    let sql = "select jsonb_build_object('value', u.value) from unnest($1::jsonb[]) with ordinality as u (value, n) order by u.n";
    let rows: Vec<Json<Box<RawValue>>> = sqlx::query_scalar(sql)
        .bind(values)
        .fetch_all(pool)
        .await
        .expect("whatever was not refused is stored");
    rows.into_iter().map(|row| row.0).collect()
}

#[tokio::test]
async fn a_value_of_every_type_arrives_bit_for_bit_or_is_refused_where_it_is_returned() {
    const CASES: usize = 2_000;
    let db = TestDb::new().await;
    let mut runner = TestRunner::new(Config::default());
    let (mut sent, mut json, mut refused) = (Vec::new(), Vec::new(), 0);
    for _ in 0..CASES {
        let value = everything()
            .new_tree(&mut runner)
            .expect("a value")
            .current();
        let written = finish::<_, String, _>(Ok(value.clone()), &codec::<Everything>());
        match (written, value.refusal()) {
            (Ok(written), None) => {
                sent.push(value);
                json.push(written);
            }
            (Err(_), Some(_)) => refused += 1,
            (Ok(_), Some(reason)) => panic!("{value:?} has {reason}, and is accepted"),
            (Err(error), None) => panic!("{value:?} is refused: {error}"),
        }
    }
    assert!(
        refused > 50 && sent.len() > CASES / 3,
        "{refused} refused, {} sent",
        sent.len()
    );
    for (sent, stored) in sent.into_iter().zip(through_jsonb(&db.pool, &json).await) {
        let outputs = Outputs::new(&stored).expect("an object");
        let arrived = outputs.required("value", &codec::<Everything>());
        let arrived = arrived.unwrap_or_else(|error| panic!("{sent:?}: {error}"));
        let expected = sent.stored();
        assert_eq!(arrived, expected);
        assert_eq!(arrived.bits(), expected.bits());
    }
}

#[tokio::test]
async fn floats_of_daily_life_arrive_bit_for_bit() {
    let db = TestDb::new().await;
    let floats: Vec<f64> = (1..10_000)
        .flat_map(|n| {
            let n = f64::from(n);
            [
                n / 7.0,
                n.sqrt(),
                n.sin(),
                1_733_020_800.0 + n * 0.000_123,
                n / 100.0,
            ]
        })
        .collect();
    let json = finish::<_, String, _>(Ok(floats.clone()), &codec()).expect("storable");
    let stored = through_jsonb(&db.pool, &[json]).await;
    let outputs = Outputs::new(&stored[0]).expect("an object");
    let arrived: Vec<f64> = outputs.required("value", &codec()).expect("fits");
    let bits = |floats: &[f64]| {
        floats
            .iter()
            .map(|float| float.to_bits())
            .collect::<Vec<_>>()
    };
    assert_eq!(bits(&arrived), bits(&floats));
}
