//! Reads the patterns of conditions.

use serde_json::{Map, Number, Value};

use crate::problem::ConditionProblem;

/// Numbers from here on have neighbours that are more than 1 apart once they are floating point.
const EXACT_FLOAT_LIMIT: f64 = 9_007_199_254_740_992.0;

/// The pattern as JSON, provided that Postgres would store just what was written.
pub(crate) fn read(text: &str) -> Result<Map<String, Value>, ConditionProblem> {
    let value = serde_json::from_str(text).map_err(|error| ConditionProblem::NotJson {
        message: error.to_string(),
    })?;
    match value {
        Value::Object(pattern) => pattern.iter().try_for_each(check_entry).map(|()| pattern),
        other => Err(ConditionProblem::NotAnObject {
            found: type_name(&other),
        }),
    }
}

fn check_entry((key, value): (&String, &Value)) -> Result<(), ConditionProblem> {
    check_text(key)?;
    check_value(value)
}

/// The parser bounds the depth.
fn check_value(value: &Value) -> Result<(), ConditionProblem> {
    match value {
        Value::Null | Value::Bool(_) => Ok(()),
        Value::Number(number) => check_number(number),
        Value::String(text) => check_text(text),
        Value::Array(elements) => elements.iter().try_for_each(check_value),
        Value::Object(entries) => entries.iter().try_for_each(check_entry),
    }
}

fn check_text(text: &str) -> Result<(), ConditionProblem> {
    if text.contains('\0') {
        Err(ConditionProblem::HoldsNul)
    } else {
        Ok(())
    }
}

/// An integer beyond 64 bits is parsed as the nearest floating point number, and would then match
/// something else.
fn check_number(number: &Number) -> Result<(), ConditionProblem> {
    match number.as_f64() {
        Some(float) if number.is_f64() && float.abs() >= EXACT_FLOAT_LIMIT => {
            Err(ConditionProblem::InexactNumber {
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
