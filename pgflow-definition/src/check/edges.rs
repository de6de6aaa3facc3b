//! The step graph: what dependencies name, cycles, and the order of steps.

use super::Report;
use crate::problem::{CycleEdge, Part, ProblemKind};
use crate::{StepDefinition, StepKind, graph};

pub(super) fn check(report: &mut Report<'_>) {
    let dependencies: Vec<Vec<usize>> = report
        .steps()
        .map(|(index, step)| step_dependencies(report, index, step))
        .collect();
    let cycles = graph::cycles(&dependencies);
    if cycles.is_empty() {
        order(report, &dependencies);
    }
    for cycle in cycles {
        report_cycle(report, &cycle);
    }
}

/// Checks the dependencies of one step and returns those that make sense, so that a bad one has no consequences.
fn step_dependencies(
    report: &mut Report<'_>,
    index: usize,
    step: &StepDefinition<'_>,
) -> Vec<usize> {
    if step.kind == StepKind::Map && step.depends_on.len() > 1 {
        report.on_step(
            index,
            Part::Dependencies,
            ProblemKind::MapArity {
                count: step.depends_on.len(),
            },
        );
    }
    let mut known = Vec::with_capacity(step.depends_on.len());
    for (position, &name) in step.depends_on.iter().enumerate() {
        let problem = if step.depends_on[..position].contains(&name) {
            ProblemKind::DuplicateDependency { name: name.into() }
        } else if name == step.slug {
            ProblemKind::SelfDependency
        } else if let Some(dependency) = report.flow.step_index(name) {
            known.push(dependency);
            continue;
        } else {
            let twin = report
                .flow
                .steps
                .iter()
                .find(|other| other.slug.eq_ignore_ascii_case(name));
            ProblemKind::UnknownDependency {
                name: name.into(),
                differs_in_case: twin.map(|step| step.slug.into()),
            }
        };
        report.on_step(index, dependency_part(step, position), problem);
    }
    known
}

fn dependency_part(step: &StepDefinition<'_>, position: usize) -> Part {
    match (step.kind, step.depends_on.len()) {
        (StepKind::Map, 1) => Part::MapSource,
        _ => Part::Dependency(position),
    }
}

fn order(report: &mut Report<'_>, dependencies: &[Vec<usize>]) {
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
    let edges: Vec<CycleEdge> = cycle
        .iter()
        .zip(cycle.iter().cycle().skip(1))
        .filter_map(|(&index, &next)| {
            let step = &steps[index];
            let dependency = step
                .depends_on
                .iter()
                .position(|&name| name == steps[next].slug)?;
            Some(CycleEdge {
                step: index,
                slug: step.slug.into(),
                dependency,
            })
        })
        .collect();
    if let Some(first) = edges.first() {
        let part = dependency_part(&steps[first.step], first.dependency);
        report.on_step(first.step, part, ProblemKind::Cycle(edges));
    }
}
