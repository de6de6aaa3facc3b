//! JSON as conditions hold it.

use std::fmt::Write;

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Json {
    Null,
    Bool(bool),
    /// As it will be written.
    Number(String),
    Text(String),
    Array(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl Json {
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Null => "null".to_owned(),
            Self::Bool(value) => value.to_string(),
            Self::Number(text) => text.clone(),
            Self::Text(text) => quote(text),
            Self::Array(elements) => {
                let elements: Vec<String> = elements.iter().map(Self::text).collect();
                format!("[{}]", elements.join(","))
            }
            Self::Object(entries) => {
                let entry =
                    |(key, value): &(String, Self)| format!("{}:{}", quote(key), value.text());
                let entries: Vec<String> = entries.iter().map(entry).collect();
                format!("{{{}}}", entries.join(","))
            }
        }
    }

    /// Returns whether Postgres finds that this `@>` the other.
    pub(crate) fn contains(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Object(entries), Self::Object(others)) => others.iter().all(|(key, other)| {
                entries
                    .iter()
                    .any(|(own, value)| own == key && value.contains(other))
            }),
            (Self::Array(elements), Self::Array(others)) => others
                .iter()
                .all(|other| elements.iter().any(|element| element.contains(other))),
            (Self::Number(one), Self::Number(other)) => {
                one == other
                    || one.parse::<f64>().ok() == other.parse::<f64>().ok() && is_exact(one)
            }
            (one, other) => one == other,
        }
    }
}

/// Returns whether the number is one that a comparison of floating points can tell from its
/// neighbours.
fn is_exact(number: &str) -> bool {
    number.len() <= 15
}

/// A JSON string.
fn quote(string: &str) -> String {
    let mut text = String::from('"');
    for character in string.chars() {
        match character {
            '"' | '\\' => text.extend(['\\', character]),
            // Writing to a string does not fail.
            control if u32::from(control) < 0x20 => {
                let _ = write!(text, "\\u{:04x}", u32::from(control));
            }
            other => text.push(other),
        }
    }
    text.push('"');
    text
}
