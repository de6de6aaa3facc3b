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
}

pub(super) fn to_json<T: Serialize + ?Sized>(value: &T) -> Result<Box<RawValue>, EncodeError> {
    checked(to_raw_value(value))
}

fn checked(
    encoded: Result<Box<RawValue>, serde_json::Error>,
) -> Result<Box<RawValue>, EncodeError> {
    let json = encoded.map_err(EncodeError::Serialize)?;
    if contains_nul(json.get()) {
        return Err(EncodeError::Nul);
    }
    Ok(json)
}

/// Whether a JSON text has the escape of U+0000: a backslash that is not itself escaped, then `u0000`.
fn contains_nul(json: &str) -> bool {
    json.match_indices("\\u0000").any(|(at, _)| {
        let backslashes = json[..at].bytes().rev().take_while(|byte| *byte == b'\\');
        backslashes.count() % 2 == 0
    })
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
    fn a_value_that_does_not_serialise_is_explained() {
        let error = to_json(&BTreeMap::from([((1, 2), 3)])).expect_err("no string keys");
        assert_eq!(
            error.to_string(),
            "it does not serialise to JSON: key must be a string"
        );
    }
}
