//! From a value to JSON that Postgres takes, and from which the same value is read back.

use std::{fmt, mem};

use serde::{Serialize, ser::Error};
use serde_json::value::RawValue;

use super::{
    place::path_at,
    watch::{Change, Found, JsonWriter, Watch},
};

/// The most that Postgres can keep in one `jsonb` value, and what a value may take when it is
/// printed.
pub(crate) const MAX_SIZE: usize = 0x0FFF_FFFF;

/// The deepest value that `serde_json` reads back, as an element of a map step's list.
const MAX_DEPTH: usize = 126;

/// A value can't be stored in a `jsonb` column, or not so that the same value is read back.
///
/// `path` says where in the value the cause lies, such as `packages[3].ratio`; empty for the whole.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// Its `Serialize` implementation failed, or it has map keys that JSON has no form for.
    #[error("{}it does not serialise to JSON: {source}", At(path))]
    Serialize {
        /// The path of the value.
        path: String,
        /// The error of the serializer.
        source: serde_json::Error,
    },
    /// It is null, and the output of a map step with `on_element_failure = "null"`.
    #[error(
        "it is null, which stands for an element that failed (`on_element_failure = \"null\"`); return something that \
         is never null"
    )]
    FailedElement,
    /// A string in it contains U+0000, which `jsonb` has no form for.
    #[error(
        "{}it contains the character U+0000, which Postgres can't store in `jsonb`; remove the character, or encode the \
         text, for example as base64",
        At(path)
    )]
    Nul {
        /// The path of the value.
        path: String,
    },
    /// A string in it contains one half of a surrogate pair without the other: only JSON that was
    /// not written by Rust does.
    #[error(
        "{}it contains a `\\u` escape that is only one half of a surrogate pair, which no text in Postgres can hold; repair \
         the JSON where it comes from",
        At(path)
    )]
    LoneSurrogate {
        /// The path of the value.
        path: String,
    },
    /// A float in it is NaN or infinite, which JSON has no form for: it would read back as a null.
    #[error(
        "{}it is NaN or infinite, which JSON has no form for; use an `Option`, an enum or a text for what is not a number",
        At(path)
    )]
    NotFinite {
        /// The path of the value.
        path: String,
    },
    /// It has `Some(None)`, `Some(())` or the like in it, which would read back as `None`.
    #[error(
        "{}it is `Some` of something that JSON writes as null, as `None` is: it would read back as `None`; use an enum, or a `bool`",
        At(path)
    )]
    SomeOfNothing {
        /// The path of the value.
        path: String,
    },
    /// It is nested deeper than JSON is read back.
    #[error(
        "{}it is nested more than {MAX_DEPTH} levels deep, and could not be read back; store it flat, or encode it as a text",
        At(path)
    )]
    TooDeep {
        /// The path of the value.
        path: String,
    },
    /// Postgres writes numbers out in full: the value is short, and would be too long to be read
    /// back.
    #[error(
        "its numbers, written out in full as Postgres does, make it {size} bytes long, which is more than the {MAX_SIZE} that can be read back; \
         keep large data elsewhere and return where it lies"
    )]
    TooLong {
        /// The size of the text.
        size: usize,
    },
}

/// The beginning of a sentence about a part of the value.
struct At<'p>(&'p str);

impl fmt::Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            "" => Ok(()),
            path => write!(f, "at `{path}`: "),
        }
    }
}

/// A value that has a form in JSON, whatever its type.
///
/// The compiler builds these methods once for each type, and everything behind them once.
pub trait AsJson {
    /// Writes the value.
    fn write(&self, writer: JsonWriter<'_>) -> serde_json::Result<()>;
}

impl<T: Serialize> AsJson for T {
    fn write(&self, writer: JsonWriter<'_>) -> serde_json::Result<()> {
        self.serialize(writer)
    }
}

pub(super) fn to_json(value: &dyn AsJson) -> Result<Box<RawValue>, EncodeError> {
    let found = Found::default();
    let mut bytes = Vec::new();
    let mut serializer = serde_json::Serializer::new(&mut bytes);
    let json = (value.write(Watch::outermost(&mut serializer, &found)))
        .and_then(|()| String::from_utf8(mem::take(&mut bytes)).map_err(Error::custom))
        .and_then(RawValue::from_string);
    match json {
        Ok(json) => checked(json),
        Err(error) => Err(refused(&bytes, found.change(), error)),
    }
}

/// `before` is the JSON in front of the place.
#[cold]
fn refused(before: &[u8], change: Option<Change>, source: serde_json::Error) -> EncodeError {
    let before = String::from_utf8_lossy(before);
    let path = path_at(&before, 1, before.len());
    match change {
        Some(Change::NotFinite) => EncodeError::NotFinite { path },
        Some(Change::SomeOfNothing) => EncodeError::SomeOfNothing { path },
        Some(Change::TooDeep) => EncodeError::TooDeep { path },
        None => EncodeError::Serialize { path, source },
    }
}

fn checked(json: Box<RawValue>) -> Result<Box<RawValue>, EncodeError> {
    let text = json.get();
    let (at, problem) = match scan(text) {
        Ok(size) if size <= MAX_SIZE || size == text.len() => return Ok(json),
        Ok(size) => return Err(EncodeError::TooLong { size }),
        Err(problem) => problem,
    };
    let path = path_at(text, 1 + text[..at].matches('\n').count(), {
        at - text[..at].rfind('\n').map_or(0, |newline| newline + 1)
    });
    Err(match problem {
        Problem::Nul => EncodeError::Nul { path },
        Problem::LoneSurrogate => EncodeError::LoneSurrogate { path },
        Problem::TooDeep => EncodeError::TooDeep { path },
    })
}

#[derive(Debug, Clone, Copy)]
enum Problem {
    Nul,
    LoneSurrogate,
    TooDeep,
}

/// Returns how long the JSON is when its numbers are written out in full, or what `jsonb` and
/// readers refuse, and where.
fn scan(json: &str) -> Result<usize, (usize, Problem)> {
    let bytes = json.as_bytes();
    let (mut at, mut depth, mut size) = (0, 0_usize, bytes.len());
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => {
                at = skip_text(json, at + 1)?;
                continue;
            }
            b'[' | b'{' => {
                depth += 1;
                if depth > MAX_DEPTH {
                    return Err((at, Problem::TooDeep));
                }
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            // No word of JSON has an `e` that digits follow.
            b'e' | b'E' => size = size.saturating_add(exponent(&bytes[at + 1..])),
            _ => {}
        }
        at += 1;
    }
    Ok(size)
}

/// The number behind an `e`, without its sign.
fn exponent(bytes: &[u8]) -> usize {
    let digits = bytes
        .iter()
        .skip_while(|byte| matches!(byte, b'+' | b'-'))
        .take_while(|byte| byte.is_ascii_digit());
    digits.fold(0, |number: usize, digit| {
        number
            .saturating_mul(10)
            .saturating_add(usize::from(digit - b'0'))
    })
}

/// Returns where the text that begins here ends, or an escape that JSON knows and `jsonb` does not.
/// Postgres would refuse it too, and quote what stands around it.
fn skip_text(json: &str, start: usize) -> Result<usize, (usize, Problem)> {
    let bytes = json.as_bytes();
    let mut at = start;
    // Where the second half of a pair must stand.
    let mut awaited = None;
    while let Some(&byte) = bytes.get(at) {
        let is_escape = byte == b'\\';
        if !is_escape && byte != b'"' {
            at += 1;
            continue;
        }
        if is_escape && bytes.get(at + 1) == Some(&b'u') {
            let digits = json.get(at + 2..at + 6).unwrap_or_default();
            let is_second = awaited.take().map(|expected| expected == at);
            match (u16::from_str_radix(digits, 16), is_second) {
                (Ok(0xDC00..=0xDFFF), Some(true)) => {}
                (Ok(0xDC00..=0xDFFF), _) | (_, Some(_)) => {
                    return Err((at, Problem::LoneSurrogate));
                }
                (Ok(0), None) => return Err((at, Problem::Nul)),
                (Ok(0xD800..=0xDBFF), None) => awaited = Some(at + 6),
                _ => {}
            }
            at += 6;
        } else if is_escape {
            at += 2;
        } else {
            break;
        }
    }
    match awaited {
        Some(_) => Err((at.min(bytes.len()), Problem::LoneSurrogate)),
        None => Ok(at + 1),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn nul_is_found_in_values_and_keys() {
        assert!(matches!(to_json(&"a\0b"), Err(EncodeError::Nul { .. })));
        assert!(matches!(
            to_json(&[("x\\\0", 1)]),
            Err(EncodeError::Nul { .. })
        ));
        assert!(matches!(
            to_json(&BTreeMap::from([("\0", 1)])),
            Err(EncodeError::Nul { .. })
        ));
    }

    #[test]
    fn text_that_only_looks_like_the_escape_is_fine() {
        for text in ["\\u0000", "\\\\u0000", "u0000", "\u{1}0000", "\\"] {
            let json = to_json(&text).expect("storable");
            assert_eq!(
                serde_json::from_str::<String>(json.get()).expect("reads back"),
                text
            );
        }
    }

    #[test]
    fn half_a_surrogate_pair_is_found() {
        for json in [
            r#""\ud800""#,
            r#""\uDBFF and more""#,
            r#""\udc00""#,
            r#""\ud83d\ud83d\ude00""#,
            r#""\ud83d\ude00\ude00""#,
            r#""\ud83d \ude00""#,
            r#""\ud83d\\ude00""#,
            r#""\ud83d\u0041""#,
            r#"["\ud83d","\ude00"]"#,
            r#"{"\ud83d":1}"#,
            r#""\\\ud83d""#,
        ] {
            let raw = RawValue::from_string(json.to_owned()).expect("JSON");
            let error = to_json(&raw).expect_err(json);
            assert!(matches!(error, EncodeError::LoneSurrogate { .. }), "{json}");
        }
    }

    #[test]
    fn whole_pairs_and_escaped_backslashes_are_fine() {
        for json in [
            r#""\ud83d\ude00""#,
            r#""\uD83D\uDE00\ud83d\ude00\u0041""#,
            r#""\\ud800""#,
            r#""\\\\ud800 \\u0000""#,
            r#""\ud7ff\ue000""#,
            r#""\u000a\u00e9""#,
        ] {
            let raw = RawValue::from_string(json.to_owned()).expect("JSON");
            assert_eq!(to_json(&raw).expect(json).get(), json);
        }
    }

    #[test]
    fn a_value_that_does_not_serialise_is_explained() {
        let error = to_json(&BTreeMap::from([((1, 2), 3)])).expect_err("no string keys");
        assert_eq!(
            error.to_string(),
            "it does not serialise to JSON: key must be a string"
        );
    }

    fn refusal<T: Serialize>(value: &T) -> String {
        to_json(value).expect_err("refused").to_string()
    }

    fn nested(levels: usize) -> Box<RawValue> {
        RawValue::from_string(format!("{}{}", "[".repeat(levels), "]".repeat(levels)))
            .expect("JSON")
    }

    #[test]
    fn what_json_has_no_form_for_is_refused_where_it_lies() {
        #[derive(Serialize)]
        struct Report {
            name: &'static str,
            series: Vec<Option<f64>>,
            ratio: f32,
        }
        let report = |series: &[Option<f64>], ratio| Report {
            name: "a",
            series: series.to_vec(),
            ratio,
        };
        assert!(to_json(&report(&[Some(1.5), None], 0.5)).is_ok());
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let text = refusal(&report(&[Some(1.5), None, Some(value)], 0.5));
            assert!(
                text.starts_with("at `series[2]`: it is NaN or infinite"),
                "{text}"
            );
        }
        let text = refusal(&report(&[], f32::NAN));
        assert!(text.starts_with("at `ratio`: it is NaN"), "{text}");
        assert!(refusal(&f64::NAN).starts_with("it is NaN"));
        let key = BTreeMap::from([("rates", BTreeMap::from([("eur", f64::NAN)]))]);
        assert!(refusal(&key).starts_with("at `rates.eur`: it is NaN"));
    }

    #[test]
    fn what_reads_back_as_none_is_refused_where_it_lies() {
        #[derive(Serialize)]
        struct Unit;
        #[derive(Serialize)]
        struct Newtype(Option<u8>);
        for text in [
            refusal(&[Some(Some(1)), None, Some(None)]),
            refusal(&[None, None, Some(())]),
            refusal(&[None, None, Some(Unit)]),
            refusal(&[None, None, Some(Newtype(None))]),
            refusal(&[None, None, Some(serde_json::Value::Null)]),
        ] {
            assert!(
                text.starts_with("at `[2]`: it is `Some` of something"),
                "{text}"
            );
        }
        assert!(to_json(&(None::<u8>, (), Unit, Newtype(None), Some([None::<u8>]))).is_ok());
    }

    #[test]
    fn what_is_too_deep_to_be_read_back_is_refused_and_its_path_is_short() {
        assert!(to_json(&nested(MAX_DEPTH)).is_ok());
        let text = refusal(&nested(MAX_DEPTH + 1));
        assert!(text.starts_with("at `[0][0]"), "{text}");
        assert!(
            text.contains("more than 126 levels deep") && text.len() < 300,
            "{text}"
        );
        let list = format!("[{}]", nested(MAX_DEPTH).get());
        assert!(serde_json::from_str::<serde_json::Value>(&list).is_ok());
    }

    /// So many lists inside one another, made while they are written.
    struct Nest(u32);

    impl Serialize for Nest {
        fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            match self.0 {
                0 => serializer.serialize_unit(),
                levels => [Self(levels - 1)].serialize(serializer),
            }
        }
    }

    #[test]
    fn what_would_run_out_of_stack_is_refused_before_it_does() {
        assert!(to_json(&Nest(100)).is_ok());
        let text = refusal(&Nest(1_000_000));
        assert!(text.contains("more than 126 levels deep"), "{text}");
    }

    #[test]
    fn numbers_count_as_they_are_written_out() {
        assert_eq!(
            scan(r#"["1e9",1e3,-2.5E-20,1.0,true,false]"#).ok(),
            Some(35 + 23)
        );
        let explosive = format!("[{}1]", "1e131071,".repeat(8299));
        let explosive = RawValue::from_string(explosive).expect("JSON");
        assert!(refusal(&explosive).contains("more than the 268435455"));
        assert!(to_json(&[f64::MAX, f64::MIN_POSITIVE]).is_ok());
    }

    #[test]
    fn whole_floats_stay_floats_where_jsonb_drops_an_exponent() {
        for (json, text) in [
            (to_json(&1e15_f64), "1000000000000000.0"),
            (to_json(&1e16_f64), "10000000000000000.0"),
            (to_json(&-1e19_f64), "-10000000000000000000.0"),
            (to_json(&1e17_f32), "99999998430674944.0"),
        ] {
            assert_eq!(json.expect("storable").get(), text);
        }
    }

    #[test]
    fn a_problem_is_found_in_json_of_several_lines() {
        let json = RawValue::from_string("{\n \"a\": [1,\n \"\\u0000\"]}".to_owned());
        let text = refusal(&json.expect("JSON"));
        assert!(
            text.starts_with("at `a[1]`: it contains the character U+0000"),
            "{text}"
        );
    }
}
