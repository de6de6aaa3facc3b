//! The required end of a run, derived from its input alone.

use std::collections::{HashMap, HashSet};

use serde_json::{Value, json};

use super::flows::{DOOM, Order, PREMIUM};

/// The state of one run in the database.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) status: String,
    pub(crate) error_message: Option<String>,
    pub(crate) output: Option<Value>,
    /// Status and output of each step.
    pub(crate) steps: HashMap<String, (String, Option<Value>)>,
    /// Tasks with an effect: step and index.
    pub(crate) effects: HashSet<(String, i32)>,
    /// A task that must complete was given up, because its workers died four times.
    pub(crate) is_given_up: bool,
}

/// All that is wrong with a run.
pub(crate) fn complaints(order: &Order, outcome: &Outcome) -> Vec<String> {
    let mut found = Vec::new();
    let mut expect = |what: String, is_so: bool| {
        if !is_so {
            found.push(what);
        }
    };
    if outcome.is_given_up {
        let error = outcome.error_message.as_deref().unwrap_or_default();
        let is_so = outcome.status == "failed" && error.contains("stalled");
        expect(
            format!(
                "a task was given up, the run is {}: {error}",
                outcome.status
            ),
            is_so,
        );
        return found;
    }
    let status = if order.is_doomed {
        "failed"
    } else {
        "completed"
    };
    let error = outcome.error_message.as_deref();
    expect(
        format!("it is {}, not {status}; error: {error:?}", outcome.status),
        outcome.status == status && error == order.is_doomed.then_some(DOOM),
    );
    for (step, expected) in steps(order) {
        let found = outcome.steps.get(step);
        let found = found.map(|(status, output)| (status.as_str(), output.as_ref()));
        let expected_row = match &expected {
            Expected::Completed(output) => ("completed", Some(output)),
            Expected::Skipped => ("skipped", None),
            Expected::Failed => ("failed", None),
        };
        expect(
            format!("step `{step}` is {found:?}, not {expected_row:?}"),
            found == Some(expected_row),
        );
        let tasks = match (step, &expected) {
            ("each", _) => order.elements.len(),
            ("extra", Expected::Skipped) => 0,
            _ => 1,
        };
        for index in 0..tasks {
            let index = i32::try_from(index).expect("there are few elements");
            expect(
                format!("task `{step}` [{index}] had no effect"),
                outcome.effects.contains(&(step.to_owned(), index)),
            );
        }
    }
    let output = (!order.is_doomed).then(|| output(order));
    expect(
        format!("its output is {:?}, not {output:?}", outcome.output),
        outcome.output == output,
    );
    found
}

enum Expected {
    Completed(Value),
    Skipped,
    Failed,
}

/// The steps whose end the input decides. In a doomed run those that nothing before its end waits
/// for may be cut short.
fn steps(order: &Order) -> Vec<(&'static str, Expected)> {
    use Expected::{Completed, Failed, Skipped};
    let elements = &order.elements;
    let mut steps = vec![
        ("gather", Completed(json!(elements))),
        (
            "each",
            Completed(elements.iter().map(|element| json!(element * 2)).collect()),
        ),
        ("collect", Completed(json!(collected(order)))),
        ("left", Completed(json!(most(order)))),
        ("right", Completed(json!(least(order)))),
        ("meet", Completed(json!(most(order) - least(order)))),
    ];
    if order.is_doomed {
        steps.push(("verdict", Failed));
        return steps;
    }
    steps.push(("verdict", Completed(json!(verdict(order)))));
    steps.push(("hopeless", Skipped));
    steps.push(("without", Completed(json!(true))));
    steps.push((
        "extra",
        if order.plan == PREMIUM {
            Completed(json!(order.plan))
        } else {
            Skipped
        },
    ));
    steps
}

/// Returns the output of a completed run: the outputs of the steps without dependents.
fn output(order: &Order) -> Value {
    let mut output = json!({ "verdict": verdict(order), "without": true });
    if order.plan == PREMIUM {
        output["extra"] = json!(order.plan);
    }
    output
}

fn verdict(order: &Order) -> u32 {
    collected(order) + most(order) - least(order)
}

fn collected(order: &Order) -> u32 {
    order.elements.iter().map(|element| element * 2).sum()
}

fn most(order: &Order) -> u32 {
    order.elements.iter().copied().max().unwrap_or_default()
}

fn least(order: &Order) -> u32 {
    order.elements.iter().copied().min().unwrap_or_default()
}

mod tests {
    use super::*;

    fn as_it_must_be(order: &Order) -> Outcome {
        let mut outcome = Outcome {
            status: "completed".to_owned(),
            output: Some(output(order)),
            ..Outcome::default()
        };
        for (step, expected) in steps(order) {
            let row = match expected {
                Expected::Completed(output) => ("completed".to_owned(), Some(output)),
                Expected::Skipped => ("skipped".to_owned(), None),
                Expected::Failed => ("failed".to_owned(), None),
            };
            outcome.steps.insert(step.to_owned(), row);
            for index in 0..20 {
                outcome.effects.insert((step.to_owned(), index));
            }
        }
        outcome
    }

    fn order(is_doomed: bool) -> Order {
        Order {
            elements: vec![3, 1, 2],
            is_doomed,
            plan: PREMIUM.to_owned(),
            seed: 0,
        }
    }

    #[test]
    fn nothing_is_wrong_with_a_run_that_is_as_it_must_be() {
        let order = order(false);
        assert_eq!(complaints(&order, &as_it_must_be(&order)), [""; 0]);
    }

    #[test]
    fn everything_that_is_wrong_is_found() {
        let order = order(false);
        let mut outcome = as_it_must_be(&order);
        outcome.status = "failed".to_owned();
        outcome.output = Some(json!({ "verdict": 0 }));
        outcome.effects.remove(&("each".to_owned(), 2));
        outcome
            .steps
            .insert("meet".to_owned(), ("completed".to_owned(), Some(json!(0))));
        outcome.steps.remove("extra");
        let found = complaints(&order, &outcome).join("\n");
        for part in [
            "it is failed, not completed",
            "step `meet` is Some((\"completed\", Some(Number(0))))",
            "step `extra` is None",
            "task `each` [2] had no effect",
            "its output is",
        ] {
            assert!(found.contains(part), "{part} is missing in:\n{found}");
        }
        assert_eq!(found.lines().count(), 5, "{found}");
    }

    #[test]
    fn a_doomed_run_that_completes_is_found() {
        let completed = as_it_must_be(&order(false));
        let found = complaints(&order(true), &completed).join("\n");
        assert!(found.contains("it is completed, not failed"), "{found}");
        assert!(
            found.contains("step `verdict` is Some((\"completed\""),
            "{found}"
        );
    }

    #[test]
    fn a_run_with_a_task_that_was_given_up_must_say_so() {
        let order = order(false);
        let mut outcome = as_it_must_be(&order);
        outcome.is_given_up = true;
        assert_eq!(complaints(&order, &outcome).len(), 1);
        outcome.status = "failed".to_owned();
        outcome.error_message = Some(
            "stalled: its worker died during attempt 4, and no other attempt follows".to_owned(),
        );
        assert_eq!(complaints(&order, &outcome), [""; 0]);
    }
}
