//! Trait bounds of the worker constructors: choosing the wrong one yields a single readable
//! compiler error.
//!
//! The bounds are on the `impl` blocks of the constructors: rustc examines a call that fails one no
//! further. With bounds on the functions, rustc would also count the arguments of a call that
//! another function is meant for. Each bound depends on the result of the one before it: a flow
//! that fails one is not checked against the next.
//!
//! Each has a second implementation, for types that don't exist: with a single one, rustc reports
//! which of its conditions fails, in its own words.

use super::{FlowWorker, StepWorker, StepWorkers};
use crate::flow::{Flow, OneQueue, QueuePerStep};

/// Implemented by nothing.
pub trait Nobody {}

/// The type is a flow.
#[diagnostic::on_unimplemented(
    message = "`{F}` is not a flow",
    label = "not a flow",
    note = "a flow is a type with a `#[flow(input = ..)] impl {F} {{ .. }}` block"
)]
pub trait WorkerOf<F> {
    /// Itself.
    type Worker;
}

#[diagnostic::do_not_recommend]
impl<F: Flow> WorkerOf<F> for FlowWorker<F> {
    type Worker = Self;
}

#[diagnostic::do_not_recommend]
impl<F: Flow> WorkerOf<F> for StepWorker<F> {
    type Worker = Self;
}

#[diagnostic::do_not_recommend]
impl<F, T: Nobody> WorkerOf<F> for T {
    type Worker = Self;
}

/// A worker whose type is a flow.
pub type OfFlow<W, F> = <W as WorkerOf<F>>::Worker;

/// The flow's queue mode is known: it need not be where the flow is a parameter.
#[diagnostic::on_unimplemented(
    message = "whether flow `{F}` has one queue or one for each step is not known here, so this worker may not fit it",
    label = "the bound on `{F}` says nothing of its queues",
    note = "for a `FlowWorker` write `{F}: Flow<Queues = OneQueue>`, for a `StepWorker` write `{F}: StepQueued`"
)]
pub trait KnowsQueues<F> {
    /// Itself.
    type Worker;
}

#[diagnostic::do_not_recommend]
impl<F: Flow<Queues: KnownMode>> KnowsQueues<F> for FlowWorker<F> {
    type Worker = Self;
}

#[diagnostic::do_not_recommend]
impl<F: Flow<Queues: KnownMode>> KnowsQueues<F> for StepWorker<F> {
    type Worker = Self;
}

#[diagnostic::do_not_recommend]
impl<F, T: Nobody> KnowsQueues<F> for T {
    type Worker = Self;
}

/// Either mode.
pub trait KnownMode {}

impl KnownMode for OneQueue {}

impl KnownMode for QueuePerStep {}

/// A worker whose flow's queue mode is known.
pub type OfKnownQueues<W, F> = <OfFlow<W, F> as KnowsQueues<F>>::Worker;

/// A flow worker's flow has one queue.
#[diagnostic::on_unimplemented(
    message = "flow `{F}` has a queue for each step, so `FlowWorker` can't run it; use `StepWorker::<{F}>::all()`, or `StepWorker::<{F}>::new(step)` for one step",
    label = "this flow is declared `with_step_queues`"
)]
pub trait RunsOneQueue<F> {
    /// Itself.
    type Worker;
}

#[diagnostic::do_not_recommend]
impl<F: Flow<Queues = OneQueue>> RunsOneQueue<F> for FlowWorker<F> {
    type Worker = Self;
}

#[diagnostic::do_not_recommend]
impl<F, T: Nobody> RunsOneQueue<F> for T {
    type Worker = Self;
}

/// A flow worker that fits its flow.
pub type OfOneQueue<W, F> = <OfKnownQueues<W, F> as RunsOneQueue<F>>::Worker;

/// A step worker's flow has a queue for each step.
#[diagnostic::on_unimplemented(
    message = "flow `{F}` has one queue for all its steps, so `StepWorker` can't run it; use `FlowWorker::<{F}>`, or declare the flow `with_step_queues`",
    label = "this flow is not declared `with_step_queues`"
)]
pub trait RunsStepQueues<F> {
    /// Itself.
    type Worker;
}

#[diagnostic::do_not_recommend]
impl<F: Flow<Queues = QueuePerStep>> RunsStepQueues<F> for StepWorker<F> {
    type Worker = Self;
}

#[diagnostic::do_not_recommend]
impl<F, T: Nobody> RunsStepQueues<F> for T {
    type Worker = Self;
}

/// A step worker that fits its flow.
pub type OfStepQueues<W, F> = <OfKnownQueues<W, F> as RunsStepQueues<F>>::Worker;

/// The flow has no state.
#[diagnostic::on_unimplemented(
    message = "flow `{F}` has a state, and this worker was given none",
    label = "call `with_state(..)` instead of `new`",
    note = "`new` takes no state, it is for flows without one; this flow names the type of its state by `state = ..` in its `#[flow(..)]`"
)]
pub trait NeedsNoState<F> {
    /// The state of a flow without one.
    fn state() -> F::State
    where
        F: Flow;
}

#[diagnostic::do_not_recommend]
impl<F: Flow<State = ()>> NeedsNoState<F> for FlowWorker<F> {
    fn state() {}
}

#[diagnostic::do_not_recommend]
impl<F: Flow<State = ()>> NeedsNoState<F> for StepWorker<F> {
    fn state() {}
}

#[diagnostic::do_not_recommend]
impl<F, T: Nobody> NeedsNoState<F> for T {
    fn state() -> F::State
    where
        F: Flow,
    {
        unreachable!("there is no such type")
    }
}

/// Bound of `StepWorker::all`, which can't have those above: where one fails, rustc continues to
/// `Iterator::all`, and speaks of both.
#[diagnostic::on_unimplemented(
    message = "flow `{F}` has one queue for all its steps, so `StepWorker` can't run it; use `FlowWorker::<{F}>`, or declare the flow `with_step_queues`",
    label = "this flow is not declared `with_step_queues`"
)]
pub trait QueueOfEachStep<F> {}

#[diagnostic::do_not_recommend]
impl<F> QueueOfEachStep<F> for QueuePerStep {}

/// The same for the state, as `(): StateOf<F>`.
#[diagnostic::on_unimplemented(
    message = "flow `{F}` has a state, and these workers were given none",
    label = "call `all_with_state(..)` instead of `all`",
    note = "`all` takes no state, it is for flows without one; this flow names the type of its state by `state = ..` in its `#[flow(..)]`"
)]
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

/// Implemented by no worker: what `FlowWorker::all` asks for. Without that function, rustc would
/// speak of `Iterator::all`.
#[diagnostic::on_unimplemented(
    message = "a `FlowWorker` runs all steps of its flow, there is no `all` of them; write `FlowWorker::<{F}>::new()`, or `FlowWorker::<{F}>::with_state(..)` for a flow with a state",
    label = "one `FlowWorker` is enough",
    note = "`StepWorker::<{F}>::all()` is for flows declared `with_step_queues`"
)]
pub trait RunsStepsApart<F> {
    /// The workers.
    fn all() -> StepWorkers<F>;
}
