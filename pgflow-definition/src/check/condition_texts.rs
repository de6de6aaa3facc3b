//! The rules for the patterns of conditions.

use super::Report;
use crate::condition;
use crate::problem::{ConditionProblem, ProblemKind};

pub(super) fn check(report: &mut Report<'_>) {
    // The mistake is that an end step has any.
    for (index, step) in report.steps().filter(|(_, step)| step.runs_on.is_none()) {
        for (part, text) in step.condition.patterns() {
            let problems = match condition::read(text) {
                Err(problem) => vec![problem],
                Ok(pattern) => pattern
                    .keys()
                    .filter(|key| !step.may_have_condition_key(key))
                    .map(|key| ConditionProblem::NotADependency {
                        key: key.clone(),
                        dependencies: step.depends_on.iter().copied().map(str::to_owned).collect(),
                    })
                    .collect(),
            };
            for problem in problems {
                report.on_step(index, part, ProblemKind::Condition(problem));
            }
        }
    }
}
