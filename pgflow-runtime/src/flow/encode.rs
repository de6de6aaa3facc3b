//! From a value to JSON that Postgres takes.

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

/// A value can't be stored in a `jsonb` column.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// Its `Serialize` implementation failed, or it has map keys that JSON has no form for.
    #[error("it does not serialise to JSON: {0}")]
    Serialize(#[source] serde_json::Error),
    /// A string in it contains U+0000, which `jsonb` has no form for.
    #[error(
        "it contains the character U+0000, which Postgres can't store in `jsonb`; remove the character, or encode the \
         text, for example as base64"
    )]
    Nul,
    /// A string in it contains one half of a surrogate pair without the other: only JSON that was not written by Rust does.
    #[error(
        "it contains a `\\u` escape that is only one half of a surrogate pair, which no text in Postgres can hold; repair \
         the JSON where it comes from"
    )]
    LoneSurrogate,
}

pub(super) fn to_json<T: Serialize + ?Sized>(value: &T) -> Result<Box<RawValue>, EncodeError> {
    checked(to_raw_value(value))
}

fn checked(
    encoded: Result<Box<RawValue>, serde_json::Error>,
) -> Result<Box<RawValue>, EncodeError> {
    let json = encoded.map_err(EncodeError::Serialize)?;
    check_escapes(json.get())?;
    Ok(json)
}

/// Refuses the escapes that JSON knows and `jsonb` does not. Postgres would refuse them too, and quote what stands around them.
fn check_escapes(json: &str) -> Result<(), EncodeError> {
    // Where the second half of a pair must stand.
    let mut awaited = None;
    for (at, _) in json.match_indices("\\u") {
        let backslashes = json[..at].bytes().rev().take_while(|byte| *byte == b'\\');
        if backslashes.count() % 2 == 1 {
            continue;
        }
        let digits = json.get(at + 2..at + 6).unwrap_or_default();
        let is_second = awaited.take().map(|expected| expected == at);
        match (u16::from_str_radix(digits, 16), is_second) {
            (Ok(0xDC00..=0xDFFF), Some(true)) => {}
            (Ok(0xDC00..=0xDFFF), _) | (_, Some(_)) => return Err(EncodeError::LoneSurrogate),
            (Ok(0), None) => return Err(EncodeError::Nul),
            (Ok(0xD800..=0xDBFF), None) => awaited = Some(at + 6),
            _ => {}
        }
    }
    match awaited {
        Some(_) => Err(EncodeError::LoneSurrogate),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn nul_is_found_in_values_and_keys() {
        assert!(matches!(to_json("a\0b"), Err(EncodeError::Nul)));
        assert!(matches!(to_json(&[("x\\\0", 1)]), Err(EncodeError::Nul)));
        assert!(matches!(
            to_json(&BTreeMap::from([("\0", 1)])),
            Err(EncodeError::Nul)
        ));
    }

    #[test]
    fn text_that_only_looks_like_the_escape_is_fine() {
        for text in ["\\u0000", "\\\\u0000", "u0000", "\u{1}0000", "\\"] {
            let json = to_json(text).expect("storable");
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
            assert!(matches!(error, EncodeError::LoneSurrogate), "{json}");
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
}
