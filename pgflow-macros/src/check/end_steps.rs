//! Steps that run when the run has ended: what only a step of the run can have.

use crate::{errors::Errors, model::Step};

/// The arguments, and what to do without each.
const OF_THE_RUN: [(&str, &str); 7] = [
    ("depends_on", OUTPUTS),
    ("map", OUTPUTS),
    ("if", DECIDE),
    ("if_not", DECIDE),
    ("when_unmet", DECIDE),
    ("when_exhausted", ALONE),
    ("on_element_failure", ALONE),
];
const OUTPUTS: &str = "take the outputs of all completed steps as `end: &RunEnd`";
const DECIDE: &str = "take `end: &RunEnd`, and decide in the body";
const ALONE: &str = "its own failure never changes how the run ended";

pub(super) fn check(step: &Step<'_>, errors: &mut Errors) {
    for (key, instead) in OF_THE_RUN {
        if let Some(at) = step.args.key(key) {
            errors.at(
                at.span(),
                format!(
                    "`{}` runs when the run has ended, so it can have no `{key}`; remove it: {instead}",
                    step.name
                ),
            );
        }
    }
}
