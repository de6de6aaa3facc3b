//! Descriptions of JSON texts that do not fit a type: the place and the expectation, but no value.
//!
//! serde writes the offending value into its messages and offers no other form of them. So only
//! messages of a known form are parsed, and the part that can contain a value is removed. Other
//! messages come from a type's own code, and are dropped entirely.

use serde_json::error::Category;

const UNKNOWN_VARIANT: &str = "unknown variant `";

/// The words of serde for a value that it found, and ours. In the first list the value follows; the
/// second ends there.
const FOUND_WITH_VALUE: &[(&str, &str)] = &[
    ("string \"", "a string"),
    ("integer `", "an integer"),
    ("floating point `", "a floating point number"),
    ("boolean `", "a boolean"),
    ("character `", "a character"),
];
const FOUND: &[(&str, &str)] = &[
    ("null", "null"),
    ("unit value", "null"),
    ("Option value", "an optional value"),
    ("byte array", "bytes"),
    ("sequence", "an array"),
    ("map", "an object"),
    ("newtype struct", "a wrapped value"),
    ("enum", "a variant"),
    ("unit variant", "a variant without data"),
    ("newtype variant", "a variant with data"),
    ("tuple variant", "a variant with data"),
    ("struct variant", "a variant with data"),
];

/// The mistake in words, with its line and column, without any value of the text.
pub(super) fn problem(error: &serde_json::Error) -> String {
    let message = message(error);
    let text = match error.classify() {
        // The parser's own messages are fixed texts.
        Category::Syntax | Category::Eof | Category::Io => message,
        Category::Data => data_problem(&message),
    };
    match (error.line(), error.column()) {
        (0, _) => text,
        (line, column) => format!("{text} (line {line}, column {column})"),
    }
}

/// The message without the position that `serde_json` appends.
fn message(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let position = format!(" at line {} column {}", error.line(), error.column());
    match text.strip_suffix(&position) {
        Some(text) => text.to_owned(),
        None => text,
    }
}

fn data_problem(message: &str) -> String {
    known(message).unwrap_or_else(|| "the type's own check refused the value".to_owned())
}

fn known(message: &str) -> Option<String> {
    if let Some(rest) = message.strip_prefix("invalid type: ") {
        return mismatch("invalid type", rest);
    }
    if let Some(rest) = message.strip_prefix("invalid value: ") {
        return mismatch("invalid value", rest);
    }
    if message.starts_with("invalid length ") {
        return Some(format!("invalid length, expected {}", expected(message)?));
    }
    for (prefix, what) in [
        (UNKNOWN_VARIANT, "unknown variant"),
        ("unknown field `", "unknown field"),
    ] {
        if message.starts_with(prefix) {
            return Some(unknown(what, message));
        }
    }
    // These name parts of the type, not of the text.
    let of_type = [("missing field `", "`"), ("duplicate field `", "`")]
        .into_iter()
        .chain([("data did not match any variant of untagged enum ", "")]);
    for (prefix, suffix) in of_type {
        let name = message
            .strip_prefix(prefix)
            .and_then(|rest| rest.strip_suffix(suffix));
        if name.is_some_and(is_name) {
            return Some(message.to_owned());
        }
    }
    None
}

/// Describes the value that was found and the expectation.
fn mismatch(what: &str, rest: &str) -> Option<String> {
    let (found, expected) = rest.rsplit_once(", expected ")?;
    let with_value = FOUND_WITH_VALUE
        .iter()
        .find(|(text, _)| found.starts_with(text));
    let kind = with_value.or_else(|| FOUND.iter().find(|(text, _)| found == *text));
    let kind = kind.map_or_else(String::new, |(_, kind)| format!(" ({kind})"));
    Some(format!("{what}{kind}, expected {expected}"))
}

/// The message continues with the name that was read, then says what was expected, or that there is
/// nothing to expect.
fn unknown(what: &str, message: &str) -> String {
    for none in [", there are no variants", ", there are no fields"] {
        if message.ends_with(none) {
            return format!("{what}{none}");
        }
    }
    match expected(message) {
        Some(expected) => format!("{what}, expected {expected}"),
        None => what.to_owned(),
    }
}

/// Returns the text after the last "expected": a value before it may contain the word.
fn expected(message: &str) -> Option<&str> {
    message.rsplit_once(", expected ").map(|(_, text)| text)
}

fn is_name(text: &str) -> bool {
    let char_fits = |c: char| c.is_alphanumeric() || "_-$".contains(c);
    !text.is_empty() && text.chars().all(char_fits)
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU8;

    use serde::{Deserialize, Deserializer, de::DeserializeOwned, de::Error as _};

    use super::*;

    const SECRET: &str = "hunter2";

    fn problem_of<T: DeserializeOwned>(json: &str) -> String {
        let error = serde_json::from_str::<T>(json)
            .err()
            .expect("should not fit");
        let text = problem(&error);
        assert!(!text.contains(SECRET), "{text}");
        text.split(" (line ").next().unwrap_or_default().to_owned()
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Strict {
        #[allow(dead_code)]
        name: String,
    }

    #[derive(Deserialize)]
    enum Never {}

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Nothing {}

    #[derive(Deserialize)]
    #[serde(tag = "kind")]
    enum Tagged {
        One,
    }

    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Untagged {
        #[allow(dead_code)]
        Number(u8),
    }

    struct Checked;

    impl<'de> Deserialize<'de> for Checked {
        fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
            let text = String::deserialize(source)?;
            Err(D::Error::custom(format!("`{text}`, expected nothing")))
        }
    }

    #[test]
    fn kinds_are_named() {
        assert_eq!(
            problem_of::<u8>("\"hunter2\""),
            "invalid type (a string), expected u8"
        );
        assert_eq!(
            problem_of::<u8>("300"),
            "invalid value (an integer), expected u8"
        );
        assert_eq!(
            problem_of::<u8>("1.5"),
            "invalid type (a floating point number), expected u8"
        );
        assert_eq!(problem_of::<u8>("null"), "invalid type (null), expected u8");
        assert_eq!(
            problem_of::<u8>("true"),
            "invalid type (a boolean), expected u8"
        );
        assert_eq!(
            problem_of::<u8>("[\"hunter2\"]"),
            "invalid type (an array), expected u8"
        );
        assert_eq!(
            problem_of::<u8>("{\"hunter2\":1}"),
            "invalid type (an object), expected u8"
        );
        assert_eq!(
            problem_of::<NonZeroU8>("0"),
            "invalid value (an integer), expected a nonzero u8"
        );
        assert_eq!(
            problem_of::<(u8, u8)>("[1]"),
            "invalid length, expected a tuple of size 2"
        );
        assert_eq!(
            problem_of::<char>("\"hunter2\""),
            "invalid value (a string), expected a character"
        );
    }

    #[test]
    fn names_of_the_type_are_kept() {
        assert_eq!(problem_of::<Strict>("{}"), "missing field `name`");
        assert_eq!(
            problem_of::<Strict>(r#"{"name":"","name":""}"#),
            "duplicate field `name`"
        );
        assert_eq!(
            problem_of::<Strict>(r#"{"hunter2":1}"#),
            "unknown field, expected `name`"
        );
        assert_eq!(
            problem_of::<Nothing>(r#"{"hunter2":1}"#),
            "unknown field, there are no fields"
        );
        assert_eq!(
            problem_of::<Never>("\"hunter2\""),
            "unknown variant, there are no variants"
        );
        assert_eq!(
            problem_of::<Tagged>(r#"{"kind":"hunter2"}"#),
            "unknown variant, expected `One`"
        );
        assert_eq!(
            problem_of::<Untagged>("\"hunter2\""),
            "data did not match any variant of untagged enum Untagged"
        );
    }

    #[test]
    fn a_value_that_imitates_a_message_is_not_quoted() {
        let imitations = [
            ", expected hunter2",
            "`, expected hunter2",
            "\", expected hunter2",
            "hunter2, there are no variants",
            "`hunter2 at line 1 column 2",
        ];
        for value in imitations {
            let json = serde_json::to_string(value).expect("serialises");
            assert_eq!(
                problem_of::<u8>(&json),
                "invalid type (a string), expected u8"
            );
            assert_eq!(
                problem_of::<Never>(&json),
                "unknown variant, there are no variants"
            );
            assert_eq!(
                problem_of::<Tagged>(&format!(r#"{{"kind":{json}}}"#)),
                "unknown variant, expected `One`"
            );
        }
    }

    #[test]
    fn a_message_of_the_type_itself_is_dropped() {
        assert_eq!(
            problem_of::<Checked>("\"hunter2\""),
            "the type's own check refused the value"
        );
    }

    #[test]
    fn the_parser_speaks_for_itself() {
        assert_eq!(problem_of::<Vec<u8>>("[hunter2"), "expected value");
        assert_eq!(
            problem_of::<String>("\"hunter2"),
            "EOF while parsing a string"
        );
    }
}
