//! Steps that run when the run has ended: each stands alone, and there is one of each kind at most.

use super::Report;
use crate::problem::{Part, ProblemKind};
use crate::{RunsOn, SkipMode, StepDefinition, StepKind};

pub(super) fn check(report: &mut Report<'_>) {
    for (index, step) in report.steps() {
        let Some(runs_on) = step.runs_on else {
            on_dependencies(report, index, step);
            continue;
        };
        for part in parts_of_the_run(step) {
            report.on_step(index, part, ProblemKind::EndStepWithPart { runs_on });
        }
        if let Some(first) = earlier(report, index, runs_on) {
            let kind = ProblemKind::DuplicateEndStep { runs_on, first };
            report.on_step(index, Part::RunsOn, kind);
        }
    }
}

/// The parts of an end step that only steps of the run can have.
fn parts_of_the_run(step: &StepDefinition<'_>) -> impl Iterator<Item = Part> {
    let dependencies = !step.depends_on.is_empty() && step.kind == StepKind::Single;
    [
        (step.kind == StepKind::Map, Part::MapSource),
        (dependencies, Part::Dependencies),
        (step.condition.required.is_some(), Part::Required),
        (step.condition.forbidden.is_some(), Part::Forbidden),
        (step.when_unmet != SkipMode::Skip, Part::WhenUnmet),
        (step.when_exhausted != SkipMode::Fail, Part::WhenExhausted),
    ]
    .into_iter()
    .filter_map(|(has, part)| has.then_some(part))
}

/// The slug of the step that runs on the same end and stands before this one.
fn earlier(report: &Report<'_>, index: usize, runs_on: RunsOn) -> Option<String> {
    let mut before = report.flow.steps[..index].iter();
    let first = before.find(|step| step.runs_on == Some(runs_on))?;
    Some(first.slug.into())
}

fn on_dependencies(report: &mut Report<'_>, index: usize, step: &StepDefinition<'_>) {
    for (position, &name) in step.depends_on.iter().enumerate() {
        let is_repeated = step.depends_on[..position].contains(&name);
        let dependency = report.flow.steps.iter().find(|other| other.slug == name);
        let runs_on = dependency.and_then(|dependency| dependency.runs_on);
        if let (Some(runs_on), false) = (runs_on, is_repeated) {
            let part = super::edges::dependency_part(step, position);
            let name = name.into();
            report.on_step(
                index,
                part,
                ProblemKind::EndStepAsDependency { name, runs_on },
            );
        }
    }
}
