//! From stored JSON to a value, and what to say when it does not fit.

use std::{collections::BTreeMap, fmt};

use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::{place::path_at, redact};

/// Stored JSON does not have the type that the code expects.
///
/// Names the value that was read, the place of the mistake and the expected type; never the value,
/// which may be a secret. Keys of objects are part of the place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecodeError {
    what: String,
    misfit: Misfit,
}

impl DecodeError {
    pub(crate) fn new(what: impl Into<String>, misfit: Misfit) -> Self {
        Self {
            what: what.into(),
            misfit,
        }
    }

    /// Returns the name of the value that was read, such as "output of step `report`".
    pub fn what(&self) -> &str {
        &self.what
    }

    /// Returns the path of the mistake, such as `packages[3].version`; empty for the whole.
    pub fn path(&self) -> &str {
        &self.misfit.path
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.misfit)
    }
}

// No source: the text of a serde error quotes the value.
impl std::error::Error for DecodeError {}

/// The place and the way in which a JSON text does not fit a type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misfit {
    path: String,
    problem: String,
}

impl Misfit {
    /// A value that should be there and is not.
    pub(crate) fn absent() -> Self {
        Self {
            path: String::new(),
            problem: "it is missing".to_owned(),
        }
    }

    /// The element in which the mistake lies, of a list.
    pub(super) fn first_index(&self) -> Option<i32> {
        let (index, _) = self.path.strip_prefix('[')?.split_once(']')?;
        index.parse().ok()
    }
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "at `{}`: ", self.path)?;
        }
        f.write_str(&self.problem)
    }
}

/// Reads a value.
pub(crate) fn decode<T: DeserializeOwned>(json: &RawValue) -> Result<T, Misfit> {
    // `serde_json::from_str`, of which the compiler would build two more functions for each type.
    let mut reader = serde_json::Deserializer::from_str(json.get());
    match T::deserialize(&mut reader) {
        Ok(value) => match reader.end() {
            Ok(()) => Ok(value),
            Err(error) => Err(misfit(json, &error)),
        },
        Err(error) => Err(misfit(json, &error)),
    }
}

/// Reads the keys of an object and leaves its values as they are.
///
/// The keys are slugs, which no JSON writer escapes, so they can be borrowed.
pub(crate) fn decode_object(json: &RawValue) -> Result<BTreeMap<&str, &RawValue>, Misfit> {
    serde_json::from_str(json.get()).map_err(|error| Misfit {
        path: String::new(),
        problem: redact::problem(&error),
    })
}

#[cold]
fn misfit(json: &RawValue, error: &serde_json::Error) -> Misfit {
    Misfit {
        path: path_at(json.get(), error.line(), error.column()),
        problem: redact::problem(error),
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    struct Package {
        name: String,
        size: u32,
        kind: Kind,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Kind {
        Library,
        Git { url: String },
    }

    fn problem<T: DeserializeOwned + fmt::Debug>(json: &str) -> String {
        let raw: &RawValue = serde_json::from_str(json).expect("JSON");
        let misfit = decode::<T>(raw).expect_err("should not fit");
        DecodeError::new("input", misfit).to_string()
    }

    #[test]
    fn a_value_is_read() {
        let raw: &RawValue =
            serde_json::from_str(r#"{"name":"a","size":1,"kind":"library"}"#).expect("JSON");
        let package: Package = decode(raw).expect("fits");
        assert_eq!(package.size, 1);
    }

    #[test]
    fn the_place_is_named_and_the_value_is_not() {
        let json = r#"[{"name":"a","size":1,"kind":"library"},{"name":"a","size":"hunter2"}]"#;
        assert_eq!(
            problem::<Vec<Package>>(json),
            "input: at `[1].size`: invalid type (a string), expected u32 (line 1, column 68)"
        );
    }

    #[test]
    fn an_unknown_variant_is_not_quoted_in_the_path_either() {
        for json in [
            r#"{"name":"a","size":1,"kind":"hunter2"}"#,
            r#"{"name":"a","size":1,"kind":{"hunter2":1}}"#,
        ] {
            let text = problem::<Package>(json);
            assert!(
                text.starts_with("input: at `kind`: unknown variant, expected `library` or `git`"),
                "{text}"
            );
        }
        let inside = r#"{"name":"a","size":1,"kind":{"git":{"url":{"hunter2":1}}}}"#;
        let text = problem::<Package>(inside);
        assert!(
            text.starts_with(
                "input: at `kind.git.url`: invalid type (an object), expected a string"
            ),
            "{text}"
        );
    }

    #[test]
    fn what_a_type_misses_or_refuses_lies_where_it_is_read() {
        for (json, place) in [
            (
                r#"[{"name":"a","size":1,"kind":"library"},{"name":"a"}]"#,
                "at `[1]`: missing field `size`",
            ),
            (
                r#"[{"name":"a","size":300000000000,"kind":"library"}]"#,
                "at `[0].size`: invalid value",
            ),
            (
                r#"[{"name":"a","size":null,"kind":"library"}]"#,
                "at `[0].size`: invalid type (null)",
            ),
            (
                r#"[{"name":["hunter2"],"size":1}]"#,
                "at `[0].name`: invalid type (an array)",
            ),
            (
                r#"[{"name":"a","size":1,"kind":{"git":{}}}]"#,
                "at `[0].kind.git`: missing field `url`",
            ),
            ("[1]", "at `[0]`: invalid type (an integer)"),
        ] {
            let text = problem::<Vec<Package>>(json);
            assert!(text.starts_with(&format!("input: {place}")), "{text}");
        }
    }

    #[test]
    fn the_whole_has_no_path() {
        assert_eq!(
            problem::<u8>("\"hunter2\""),
            "input: invalid type (a string), expected u8 (line 1, column 9)"
        );
    }
}
