//! From stored JSON to a value, and what to say when it does not fit.

use std::{
    collections::BTreeMap,
    fmt::{self, Write as _},
};

use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_path_to_error::{Path, Segment};

use super::redact;

/// Keys in a path are cut at this length: they come from the data.
const MAX_KEY: usize = 64;

/// Stored JSON does not have the type that the code expects.
///
/// Says what was read, where in it the mistake lies and which type was expected there; never the value, which may be
/// a secret. Keys of objects are part of the place.
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

    /// What was read, such as "output of step `report`".
    pub fn what(&self) -> &str {
        &self.what
    }

    /// Where in it the mistake lies, such as `packages[3].version`; empty for the whole.
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

/// Where and how a JSON text does not fit a type.
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
///
/// Tracking the path costs an allocation per key, so it happens in a second pass, and only for a text that does not fit.
pub(crate) fn decode<T: DeserializeOwned>(json: &RawValue) -> Result<T, Misfit> {
    serde_json::from_str(json.get()).or_else(|_| locate(json))
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
fn locate<T: DeserializeOwned>(json: &RawValue) -> Result<T, Misfit> {
    let mut source = serde_json::Deserializer::from_str(json.get());
    serde_path_to_error::deserialize(&mut source).map_err(|error| Misfit {
        path: path(error.path(), error.inner()),
        problem: redact::problem(error.inner()),
    })
}

fn path(path: &Path, error: &serde_json::Error) -> String {
    let mut segments: Vec<&Segment> = path.iter().collect();
    // The last segment of an unknown variant is the text that was read.
    if redact::is_unknown_variant(error) && matches!(segments.last(), Some(Segment::Enum { .. })) {
        segments.pop();
    }
    let mut text = String::new();
    for segment in segments {
        // Writing to a string does not fail.
        let _ = match segment {
            Segment::Seq { index } => write!(text, "[{index}]"),
            Segment::Map { key: name } | Segment::Enum { variant: name } => {
                let dot = if text.is_empty() { "" } else { "." };
                write!(text, "{dot}{}", &name[..name.floor_char_boundary(MAX_KEY)])
            }
            Segment::Unknown => write!(text, ".?"),
        };
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

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
    fn a_long_key_is_cut() {
        let json = format!(r#"{{"{}":"hunter2"}}"#, "é".repeat(100));
        let text = problem::<BTreeMap<String, bool>>(&json);
        assert!(
            text.contains(&format!("`{}`", "é".repeat(MAX_KEY / 2))),
            "{text}"
        );
    }

    #[test]
    fn the_whole_has_no_path() {
        assert_eq!(
            problem::<u8>("\"hunter2\""),
            "input: invalid type (a string), expected u8 (line 1, column 9)"
        );
    }
}
