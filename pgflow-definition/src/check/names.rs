//! Slugs and the queue names made of them.

use super::Report;
use crate::problem::{Part, ProblemKind};
use crate::slug::{BINDING_NAMES, check_slug};
use crate::{QueueMode, queue};

pub(super) fn check(report: &mut Report<'_>) {
    slugs(report);
    duplicates(report);
    // Names are only derived from slugs that are good and unique: two slugs that differ in case
    // would get different fallbacks.
    if !report.has_problem_on(None) {
        match report.flow.queue_mode {
            QueueMode::Flow => default_queue(report),
            QueueMode::Step => step_queues(report),
        }
    }
}

fn slugs(report: &mut Report<'_>) {
    if let Err(problem) = check_slug(report.flow.slug) {
        report.on_flow(Part::Slug, ProblemKind::Slug(problem));
    }
    for (index, step) in report.steps() {
        if let Err(problem) = check_slug(step.slug) {
            report.on_step(index, Part::Slug, ProblemKind::Slug(problem));
        } else if BINDING_NAMES.contains(&step.slug) {
            report.on_step(index, Part::Slug, ProblemKind::BindingName);
        }
    }
}

fn duplicates(report: &mut Report<'_>) {
    let good: Vec<_> = report
        .steps()
        .filter(|&(index, _)| !report.has_problem_on(Some(index)))
        .collect();
    for (position, &(index, step)) in good.iter().enumerate() {
        let twin = good[..position]
            .iter()
            .find(|(_, earlier)| earlier.slug.eq_ignore_ascii_case(step.slug));
        if let Some(&(first, earlier)) = twin {
            let kind = ProblemKind::DuplicateStepSlug {
                first,
                first_slug: earlier.slug.into(),
            };
            report.on_step(index, Part::Slug, kind);
        }
    }
}

fn default_queue(report: &mut Report<'_>) {
    let queue = report.flow.default_queue();
    if !queue::fits(&queue) {
        report.on_flow(
            Part::QueueName,
            ProblemKind::DefaultQueueNameTooLong { queue },
        );
    }
}

fn step_queues(report: &mut Report<'_>) {
    let flow = report.flow.slug;
    if report.flow.steps.is_empty() {
        report.on_flow(Part::QueueMode, ProblemKind::StepQueuesWithoutSteps);
    }
    for (index, step) in report.steps() {
        if report.has_problem_on(Some(index)) {
            continue;
        }
        if queue::fits(&queue::step_queue(flow, step.slug, index)) {
            continue;
        }
        let (readable, fallback) = (
            queue::readable(flow, step.slug),
            queue::fallback(flow, index),
        );
        if flow.len() > queue::MAX_STEP_QUEUED_FLOW_SLUG {
            let kind = ProblemKind::FlowQueueNameTooLong {
                step: step.slug.into(),
                index,
                readable,
                fallback,
            };
            report.on_flow(Part::QueueName, kind);
            return;
        }
        report.on_step(
            index,
            Part::QueueName,
            ProblemKind::StepQueueNameTooLong { readable, fallback },
        );
    }
}
