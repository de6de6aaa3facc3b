//! The traits that `#[flow]` implements.

use std::{
    any::Any,
    fmt::{Debug, Display},
    future::Future,
    hash::Hash,
    pin::Pin,
    sync::Arc,
};

use pgflow_definition::FlowDefinition;
use serde_json::value::RawValue;

use super::{DecodeError, Outputs, QueueModeMarker, StepError, Task, stored::Stored};

/// A future that a table of functions can hold.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The future of a handler, which returns JSON to store.
pub type HandlerFuture<'a> = BoxFuture<'a, Result<Box<RawValue>, StepError>>;

/// One step as the worker sees it.
pub type Handler<S> = for<'a> fn(&'a Task<'a>, &'a S) -> HandlerFuture<'a>;

/// Names one step of a flow. Implemented by the enum that `#[flow]` generates.
///
/// Steps are ordered as in the definition, and displayed as their slugs.
pub trait StepId: Copy + Ord + Hash + Debug + Display + Send + Sync + 'static {
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
pub trait Flow: Sized + 'static {
    /// The input of a run.
    type Input: Stored;
    /// The output of a completed run: the outputs of the leaf steps.
    type Output: Send + 'static;
    /// The type that handlers can take as `state`, any type that is `Send + Sync + 'static`; `()`
    /// when the flow names none.
    type State: SharedState;
    /// Names the steps.
    type Step: StepId;
    /// [`OneQueue`](super::OneQueue) or [`QueuePerStep`](super::QueuePerStep).
    type Queues: QueueModeMarker;

    /// Steps, dependencies and options, as sent to Postgres.
    const DEFINITION: &'static FlowDefinition<'static>;

    /// The steps' handlers, by index in the definition.
    #[doc(hidden)]
    const __HANDLERS: &'static [Handler<Self::State>];

    /// The version of the crate that declares the flow, where there is one.
    #[doc(hidden)]
    const __BUILD: Option<&'static str> = None;

    /// Reads the outputs of the leaf steps.
    #[doc(hidden)]
    fn __output(outputs: &Outputs<'_>) -> Result<Self::Output, DecodeError>;
}

/// The build of the application by default: an empty version is none.
pub(crate) fn build_of<F: Flow>() -> Option<&'static str> {
    F::__BUILD.filter(|build| !build.is_empty())
}

/// The requirement for the state of a flow: threads can share it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be the state of a flow, which threads share",
    label = "needs to be `Send`, `Sync` and free of borrowed data",
    note = "one of the types that it is made of can't be shared: use `Arc` instead of `Rc`, and `Mutex` or an atomic type instead of `RefCell` and `Cell`"
)]
// The bounds of the standard library stand on the blanket implementation alone: as supertraits of
// the bound on `Flow::State` they would be reported one by one.
#[doc(hidden)]
pub trait SharedState: Sized + 'static {
    /// Shares the state, which `downcast_ref` gets back.
    fn share(self) -> Arc<dyn Any + Send + Sync>;
    /// The same for a state that another owner keeps.
    fn lend(&self) -> &(dyn Any + Send + Sync);
}

#[diagnostic::do_not_recommend]
impl<S: Send + Sync + 'static> SharedState for S {
    fn share(self) -> Arc<dyn Any + Send + Sync> {
        Arc::new(self)
    }

    fn lend(&self) -> &(dyn Any + Send + Sync) {
        self
    }
}
