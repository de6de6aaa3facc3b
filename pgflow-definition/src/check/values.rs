//! The steps that may have conditions, and the bounds of options.

use super::Report;
use crate::options::OptionName;
use crate::problem::{ConditionProblem, Part, ProblemKind};

pub(super) fn check(report: &mut Report<'_>) {
    for (index, step) in report.steps().filter(|(_, step)| step.is_root_map()) {
        for (part, _) in step.condition.patterns() {
            report.on_step(
                index,
                part,
                ProblemKind::Condition(ConditionProblem::OnRootMap),
            );
        }
    }
    for (name, value) in report.flow.options.set() {
        if let Some(problem) = out_of_bounds(name, value) {
            report.on_flow(Part::Option(name), problem);
        }
    }
    for (index, step) in report.steps() {
        for (name, value) in step.options.set() {
            if let Some(problem) = out_of_bounds(name, value) {
                report.on_step(index, Part::Option(name), problem);
            }
        }
    }
}

fn out_of_bounds(name: OptionName, value: u32) -> Option<ProblemKind> {
    let problem = name.check(value).err()?;
    Some(ProblemKind::Option {
        name,
        value,
        problem,
    })
}
