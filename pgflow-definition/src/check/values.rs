//! The steps that may have conditions and modes, and the bounds of options.

use super::Report;
use crate::StepDefinition;
use crate::options::OptionName;
use crate::problem::{ConditionProblem, Part, ProblemKind};
use crate::{ElementFailure, StepKind};

pub(super) fn check(report: &mut Report<'_>) {
    let is_root_map = |step: &StepDefinition<'_>| step.is_root_map() && step.runs_on.is_none();
    for (index, step) in report.steps().filter(|(_, step)| is_root_map(step)) {
        for (part, _) in step.condition.patterns() {
            report.on_step(
                index,
                part,
                ProblemKind::Condition(ConditionProblem::OnRootMap),
            );
        }
    }
    for (index, _) in report.steps().filter(|(_, step)| {
        step.kind == StepKind::Single && step.on_element_failure == ElementFailure::Null
    }) {
        report.on_step(index, Part::ElementFailure, ProblemKind::NoElements);
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
