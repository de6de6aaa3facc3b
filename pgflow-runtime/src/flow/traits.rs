//! The traits that `#[flow]` implements.

use std::{fmt::Debug, future::Future, hash::Hash, pin::Pin};

use pgflow_definition::FlowDefinition;
use serde_json::value::RawValue;

use super::{DecodeError, Outputs, QueueModeMarker, StepError, Task, stored::Stored};

/// A future that a table of functions can hold.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What a handler returns: JSON to store.
pub type HandlerFuture<'a> = BoxFuture<'a, Result<Box<RawValue>, StepError>>;

/// One step as the worker sees it.
pub type Handler<S> = for<'a> fn(&'a Task<'a>, &'a S) -> HandlerFuture<'a>;

/// Names one step of a flow. Implemented by the enum that `#[flow]` generates.
pub trait StepId: Copy + Eq + Hash + Debug + Send + Sync + 'static {
    /// Every step, in the order of the definition.
    const ALL: &'static [Self];

    /// The step's slug.
    fn slug(self) -> &'static str;

    /// The step's position in the definition.
    fn index(self) -> usize;
}

/// A workflow. Implemented by `#[flow]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a flow",
    label = "not a flow",
    note = "a flow is a type with a `#[flow(input = ..)] impl {Self} {{ .. }}` block"
)]
pub trait Flow: Sized + Send + Sync + 'static {
    /// What a run starts from.
    type Input: Stored;
    /// What a completed run returns: the outputs of the leaf steps.
    type Output: Send;
    /// What handlers can take as `state`; `()` when the flow names none.
    type State: Send + Sync + 'static;
    /// Names the steps.
    type Step: StepId;
    /// [`OneQueue`](super::OneQueue) or [`QueuePerStep`](super::QueuePerStep).
    type Queues: QueueModeMarker;

    /// Steps, dependencies and options, as sent to Postgres.
    const DEFINITION: &'static FlowDefinition<'static>;

    /// The steps' handlers, by index in the definition.
    #[doc(hidden)]
    const HANDLERS: &'static [Handler<Self::State>];

    /// Reads the outputs of the leaf steps.
    #[doc(hidden)]
    fn __output(outputs: &Outputs<'_>) -> Result<Self::Output, DecodeError>;
}
