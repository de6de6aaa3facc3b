//! The step graph: what dependencies name, cycles, and the order of steps.

use super::Report;
use crate::problem::{CycleEdge, Part, ProblemKind};
use crate::{FlowDefinition, StepDefinition, StepKind, graph};

pub(super) fn check(report: &mut Report<'_>) {
    let dependencies: Vec<Vec<usize>> = report
        .steps()
        .map(|(index, step)| known_dependencies(report, index, step))
        .collect();
    let cycles = graph::cycles(&dependencies);
    if cycles.is_empty() {
        check_order(report, &dependencies);
    }
    for cycle in cycles {
        report_cycle(report, &cycle);
    }
}

/// Checks the dependencies of one step and returns the good ones: a bad one has no consequences.
fn known_dependencies(
    report: &mut Report<'_>,
    index: usize,
    step: &StepDefinition<'_>,
) -> Vec<usize> {
    if step.runs_on.is_some() {
        // The mistake is that it has any.
        return Vec::new();
    }
    let count = (0..step.depends_on.len())
        .filter(|&position| !is_repeated(step, position))
        .count();
    if step.kind == StepKind::Map && count > 1 {
        report.on_step(index, Part::Dependencies, ProblemKind::MapArity { count });
    }
    let mut known = Vec::with_capacity(count);
    for position in 0..step.depends_on.len() {
        match resolve(report.flow, step, position) {
            Ok(dependency) => known.push(dependency),
            Err(problem) => report.on_step(index, dependency_part(step, position), problem),
        }
    }
    known
}

fn is_repeated(step: &StepDefinition<'_>, position: usize) -> bool {
    step.depends_on[..position].contains(&step.depends_on[position])
}

fn resolve(
    flow: &FlowDefinition<'_>,
    step: &StepDefinition<'_>,
    position: usize,
) -> Result<usize, ProblemKind> {
    let name = step.depends_on[position];
    if is_repeated(step, position) {
        return Err(ProblemKind::DuplicateDependency { name: name.into() });
    }
    if name == step.slug {
        return Err(ProblemKind::SelfDependency);
    }
    flow.step_index(name).ok_or_else(|| {
        let twin = flow
            .steps
            .iter()
            .find(|other| other.slug.eq_ignore_ascii_case(name));
        ProblemKind::UnknownDependency {
            name: name.into(),
            differs_in_case: twin.map(|step| step.slug.into()),
        }
    })
}

pub(super) fn dependency_part(step: &StepDefinition<'_>, position: usize) -> Part {
    match (step.kind, step.depends_on.len()) {
        (StepKind::Map, 1) => Part::MapSource,
        _ => Part::Dependency(position),
    }
}

fn check_order(report: &mut Report<'_>, dependencies: &[Vec<usize>]) {
    for (index, depends_on) in dependencies.iter().enumerate() {
        if let Some(&later) = depends_on.iter().find(|&&dependency| dependency > index) {
            let dependency = report.flow.steps[later].slug.into();
            report.on_step(
                index,
                Part::Dependencies,
                ProblemKind::OutOfOrder { dependency },
            );
        }
    }
}

fn report_cycle(report: &mut Report<'_>, cycle: &[usize]) {
    let steps = report.flow.steps;
    let followers = cycle.iter().cycle().skip(1);
    let edges: Vec<CycleEdge> = cycle
        .iter()
        .zip(followers)
        .filter_map(|(&index, &next)| {
            let StepDefinition {
                slug, depends_on, ..
            } = steps[index];
            let dependency = depends_on
                .iter()
                .position(|&name| name == steps[next].slug)?;
            Some(CycleEdge {
                step: index,
                slug: slug.into(),
                dependency,
            })
        })
        .collect();
    if let Some(first) = edges.first() {
        let part = dependency_part(&steps[first.step], first.dependency);
        report.on_step(first.step, part, ProblemKind::Cycle(edges));
    }
}
