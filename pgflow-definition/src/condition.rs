//! Reads the patterns of conditions.

use serde_json::{Map, Number, Value};

use crate::problem::ProblemKind;

/// Numbers from here on have neighbours that are more than 1 apart once they are floating point.
const EXACT_FLOAT_LIMIT: f64 = 9_007_199_254_740_992.0;

/// The pattern as JSON, provided that Postgres would store just what was written.
pub(crate) fn read(text: &str) -> Result<Map<String, Value>, ProblemKind> {
    let value = serde_json::from_str(text).map_err(|error| ProblemKind::ConditionNotJson {
        message: error.to_string(),
    })?;
    find_unstorable(&value)?;
    match value {
        Value::Object(pattern) => Ok(pattern),
        other => Err(ProblemKind::ConditionNotAnObject {
            found: type_name(&other),
        }),
    }
}

/// Depth is bounded by the parser.
fn find_unstorable(value: &Value) -> Result<(), ProblemKind> {
    match value {
        Value::Null | Value::Bool(_) => Ok(()),
        Value::Number(number) => check_number(number),
        Value::String(text) => check_text(text),
        Value::Array(elements) => elements.iter().try_for_each(find_unstorable),
        Value::Object(entries) => entries.iter().try_for_each(|(key, value)| {
            check_text(key)?;
            find_unstorable(value)
        }),
    }
}

fn check_text(text: &str) -> Result<(), ProblemKind> {
    if text.contains('\0') {
        Err(ProblemKind::ConditionHoldsNul)
    } else {
        Ok(())
    }
}

/// An integer beyond 64 bits is parsed as the nearest floating point number, and would then match something else.
fn check_number(number: &Number) -> Result<(), ProblemKind> {
    match number.as_f64() {
        Some(float) if number.is_f64() && float.abs() >= EXACT_FLOAT_LIMIT => {
            Err(ProblemKind::ConditionNumberNotExact {
                number: number.to_string(),
            })
        }
        _ => Ok(()),
    }
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}
