//! Finds conditions of root steps with a key that almost matches one of the flow's input.
//!
//! The macro checks conditions on dependencies, but does not see the fields of the input's type,
//! and Postgres takes any key: a step whose `if` is misspelt would never run.

use std::collections::BTreeMap;

use pgflow_definition::StepDefinition;
use serde_json::value::RawValue;
use tracing::warn;

use crate::startup::Target;

/// Warns of such keys of the steps that a worker runs; `fields` are those of the flow's input.
///
/// A key that resembles no field is left alone: serde may write what it does not read, and SQL may
/// start runs with more than that.
pub(crate) fn check(target: Target, fields: &[&str]) {
    for step in steps(target) {
        for (condition, key, field) in misspelt(step, fields) {
            warn!(
                flow = target.definition.slug,
                step = step.slug,
                "the condition `{condition}` of this step names `{key}`, which is no field of the flow's input; was `{field}` meant?"
            );
        }
    }
}

fn steps(target: Target) -> impl Iterator<Item = &'static StepDefinition<'static>> {
    let steps = target.definition.steps.iter().enumerate();
    let own = steps.filter(move |(index, _)| target.step.is_none_or(|step| step == *index));
    own.map(|(_, step)| step)
}

/// The condition, the key in it, and the field that it resembles.
fn misspelt<'f>(
    step: &StepDefinition<'_>,
    fields: &'f [&str],
) -> Vec<(&'static str, String, &'f str)> {
    let is_root = step.depends_on.is_empty();
    let conditions = [
        ("if", step.condition.required),
        ("if_not", step.condition.forbidden),
    ];
    let mut found = Vec::new();
    for (condition, pattern) in conditions {
        let Some(pattern) = pattern.filter(|_| is_root) else {
            continue;
        };
        // Startup refuses what is no object.
        let Ok(keys) = serde_json::from_str::<BTreeMap<String, &RawValue>>(pattern) else {
            continue;
        };
        for key in keys.into_keys() {
            if let Some(field) = resembling(&key, fields) {
                found.push((condition, key, field));
            }
        }
    }
    found
}

/// The nearest field, if there is none of that name.
fn resembling<'f>(key: &str, fields: &'f [&str]) -> Option<&'f str> {
    if fields.contains(&key) {
        return None;
    }
    let plain = |name: &str| name.replace(['_', '-'], "").to_lowercase();
    let key = plain(key);
    let (distance, field) = fields
        .iter()
        .map(|field| (strsim::osa_distance(&key, &plain(field)), *field))
        .min_by_key(|(distance, _)| *distance)?;
    let longest = key.chars().count().max(plain(field).chars().count());
    (distance <= longest / 4).then_some(field)
}

#[cfg(test)]
mod tests {
    use pgflow_definition::{Condition, ElementFailure, SkipMode, StepKind, StepOptions};

    use super::*;

    const FIELDS: [&str; 3] = ["plan", "orderId", "id"];

    const ROOT: StepDefinition<'static> = StepDefinition {
        slug: "notify",
        kind: StepKind::Single,
        depends_on: &[],
        options: StepOptions {
            max_attempts: None,
            base_delay: None,
            max_delay: None,
            give_up_after: None,
            timeout: None,
            start_delay: None,
        },
        condition: Condition {
            required: Some(r#"{"plan":"premium","pln":1,"order_id":2,"x":{"orderID":3}}"#),
            forbidden: Some(r#"{"Plan":null}"#),
        },
        when_unmet: SkipMode::Skip,
        when_exhausted: SkipMode::Fail,
        on_element_failure: ElementFailure::Fail,
        runs_on: None,
        needs_flow_input: false,
    };

    #[test]
    fn keys_that_resemble_a_field_are_found() {
        let found = misspelt(&ROOT, &FIELDS);
        assert_eq!(
            found,
            [
                ("if", "order_id".to_owned(), "orderId"),
                ("if", "pln".to_owned(), "plan"),
                ("if_not", "Plan".to_owned(), "plan"),
            ]
        );
    }

    #[test]
    fn the_keys_of_other_steps_are_those_of_dependencies() {
        let step = StepDefinition {
            depends_on: &["pln"],
            ..ROOT
        };
        assert_eq!(misspelt(&step, &FIELDS), []);
    }

    #[test]
    fn a_key_that_resembles_nothing_may_be_meant() {
        for key in ["kind", "total", "ix", "plain_text", ""] {
            assert_eq!(resembling(key, &FIELDS), None, "{key}");
        }
        assert_eq!(resembling("plan", &[]), None);
    }
}
