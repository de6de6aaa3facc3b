//! How a flow's tasks are queued, at the level of types, so that the wrong kind of worker does not compile.

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

/// Bound of the constructors of a flow worker, as `F::Queues: RunByFlowWorker<F>`.
///
/// The flow is an argument so that the message can name it. On the worker's type or `impl` block the bound would double every error.
#[diagnostic::on_unimplemented(
    message = "flow `{F}` has a queue for each step, so `FlowWorker` can't run it; use `StepWorker::<{F}>::all()`, or `StepWorker::<{F}>::new(step)` for one step",
    label = "this flow is declared `with_step_queues`"
)]
#[doc(hidden)]
pub trait RunByFlowWorker<F> {}

#[diagnostic::do_not_recommend]
impl<F> RunByFlowWorker<F> for OneQueue {}

/// Bound of the constructors of a step worker, as `F::Queues: RunByStepWorker<F>`.
#[diagnostic::on_unimplemented(
    message = "flow `{F}` has one queue for all its steps, so `StepWorker` can't run it; use `FlowWorker::<{F}>`, or declare the flow `with_step_queues`",
    label = "this flow is not declared `with_step_queues`"
)]
#[doc(hidden)]
pub trait RunByStepWorker<F> {}

#[diagnostic::do_not_recommend]
impl<F> RunByStepWorker<F> for QueuePerStep {}

/// Bound of the constructors that take no state, as `(): StateOf<F>`.
#[diagnostic::on_unimplemented(
    message = "flow `{F}` has a state, and this worker was given none",
    label = "call `with_state(..)` instead of `new`, or `all_with_state(..)` instead of `all`",
    note = "`new` and `all` take no state, they are for flows without one; this flow names the type of its state by `state = ..` in its `#[flow(..)]`"
)]
#[doc(hidden)]
pub trait StateOf<F> {
    /// Itself, as the type that the flow names.
    fn into_state(self) -> F::State
    where
        F: Flow;
}

#[diagnostic::do_not_recommend]
impl<F: Flow<State = S>, S> StateOf<F> for S {
    fn into_state(self) -> S {
        self
    }
}

/// Bound of functions that take a step of flow `F`, as `F::Step: AcceptsStep<S, F>`: `S` is `F::Step`.
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

// With a single implementation, rustc would infer from it what was given, and be back at "mismatched types".
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
