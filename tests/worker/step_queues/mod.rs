//! Flows with a queue and a pool of workers for each step.

mod all;
mod coverage;
mod pools;
mod registration;
mod starvation;

use std::time::Duration;

use pgflow::prelude::*;

/// A worker that looks often, so that tests need not wait for its poll interval.
fn step_worker<F: StepQueued>(step: F::Step, state: F::State) -> StepWorker<F> {
    StepWorker::<F>::with_state(step, state).poll_interval(Duration::from_millis(20))
}
