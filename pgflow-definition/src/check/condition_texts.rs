//! What the patterns of conditions say.

use super::Report;
use crate::condition;
use crate::problem::{Part, ProblemKind};

pub(super) fn check(report: &mut Report<'_>) {
    for (index, step) in report.steps() {
        for (part, pattern) in [
            (Part::Required, step.condition.required),
            (Part::Forbidden, step.condition.forbidden),
        ] {
            let Some(text) = pattern else { continue };
            match condition::read(text) {
                Err(problem) => report.on_step(index, part, problem),
                Ok(pattern) => {
                    for key in pattern
                        .keys()
                        .filter(|key| !step.may_have_condition_key(key))
                    {
                        let dependencies =
                            step.depends_on.iter().copied().map(str::to_owned).collect();
                        let kind = ProblemKind::ConditionKeyNotADependency {
                            key: key.clone(),
                            dependencies,
                        };
                        report.on_step(index, part, kind);
                    }
                }
            }
        }
    }
}
