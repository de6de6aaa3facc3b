//! The queue mode of a flow at the level of types, so that the wrong kind of worker does not
//! compile.

use std::{convert::Infallible, marker::PhantomData};

use pgflow_definition::QueueMode;

use super::Flow;

/// All steps share the flow's queue: what [`Flow::Queues`] is by default.
#[derive(Debug, Clone, Copy)]
pub struct OneQueue;

/// Each step has a queue of its own: what [`Flow::Queues`] is under `with_step_queues`.
#[derive(Debug, Clone, Copy)]
pub struct QueuePerStep;

/// A queue mode as a type.
pub trait QueueModeMarker: sealed::Sealed + Send + Sync + 'static {
    /// The mode as a value.
    const MODE: QueueMode;
}

impl QueueModeMarker for OneQueue {
    const MODE: QueueMode = QueueMode::Flow;
}

impl QueueModeMarker for QueuePerStep {
    const MODE: QueueMode = QueueMode::Step;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::OneQueue {}
    impl Sealed for super::QueuePerStep {}
}

/// A flow declared `with_step_queues`.
pub trait StepQueued: Flow<Queues = QueuePerStep> {}

impl<F: Flow<Queues = QueuePerStep>> StepQueued for F {}

/// Bound of functions that take a step of flow `F`, as `F::Step: AcceptsStep<S, F>`: `S` is
/// `F::Step`.
///
/// It is there for its message; a parameter of type `F::Step` would only say "mismatched types".
#[diagnostic::on_unimplemented(
    message = "`{Given}` is not a step of flow `{F}`; a step of that flow, a `{Self}`, was expected; name one of the steps of `{F}`",
    label = "not a step of `{F}`"
)]
#[doc(hidden)]
pub trait AcceptsStep<Given, F> {
    /// The step itself.
    fn accept(given: Given) -> Self;
}

#[diagnostic::do_not_recommend]
impl<F, S> AcceptsStep<S, F> for S {
    fn accept(given: S) -> S {
        given
    }
}

// With a single implementation, rustc would infer from it what was given, and be back at
// "mismatched types".
#[diagnostic::do_not_recommend]
impl<F, S> AcceptsStep<Nobody<S>, F> for S {
    fn accept(given: Nobody<S>) -> S {
        match given.never {}
    }
}

/// Has no values.
#[doc(hidden)]
#[derive(Debug)]
pub struct Nobody<S> {
    never: Infallible,
    step: PhantomData<S>,
}
