//! The times at which steps started and ended, for the order of their events.

use chrono::{DateTime, Utc};

use crate::{
    client::{SkipReason, StepSnapshot, StepStatus},
    flow::Flow,
};

type Moment = DateTime<Utc>;

/// The moments of a step, none before what led to it: the database's clock may have been set back
/// in between.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Moments {
    pub(super) started: Option<Moment>,
    pub(super) ended: Option<Moment>,
    is_skipped: bool,
}

/// Those of all steps, by index.
pub(super) fn moments<F: Flow>(states: &[Option<&StepSnapshot>]) -> Vec<Moments> {
    let mut all: Vec<Moments> = Vec::with_capacity(states.len());
    // Each step comes after all that it depends on.
    for (step, state) in F::DEFINITION.steps.iter().zip(states) {
        let dependencies: Vec<Moments> = step
            .depends_on
            .iter()
            .filter_map(|slug| F::DEFINITION.step_index(slug))
            .filter_map(|index| all.get(index).copied())
            .collect();
        all.push(state.map_or_else(Moments::default, |state| of_step(state, &dependencies)));
    }
    all
}

fn of_step(state: &StepSnapshot, dependencies: &[Moments]) -> Moments {
    let ready = dependencies.iter().filter_map(|one| one.ended).max();
    // What completed has started.
    let started = not_before(ready, state.started_at.or(state.completed_at));
    let cause = match state.skip_reason {
        _ if started.is_some() => started,
        // One of them was the cause; others may have ended later.
        Some(SkipReason::DependencySkipped) => {
            let skipped = dependencies.iter().filter(|one| one.is_skipped);
            skipped.filter_map(|one| one.ended).min()
        }
        _ => ready,
    };
    let ended = state.completed_at.or(state.failed_at).or(state.skipped_at);
    Moments {
        started,
        ended: not_before(cause, ended),
        is_skipped: state.status == StepStatus::Skipped,
    }
}

fn not_before(cause: Option<Moment>, moment: Option<Moment>) -> Option<Moment> {
    // None is less than any moment.
    moment.and_then(|_| moment.max(cause))
}
