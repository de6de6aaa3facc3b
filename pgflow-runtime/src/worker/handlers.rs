//! A flow's handlers with the flow's type erased, so that the worker is compiled once.

use std::sync::Arc;

use pgflow_definition::FlowDefinition;
use serde_json::value::RawValue;

use crate::flow::{
    __private::{Handler, Task},
    BoxFuture, Flow, StepError,
};

/// What a worker runs.
pub(crate) trait Handlers: Send + Sync {
    fn definition(&self) -> &'static FlowDefinition<'static>;

    /// Calls the handler of a step; None when the definition has more steps than handlers.
    fn call<'a>(
        &'a self,
        step_index: usize,
        task: &'a Task<'a>,
    ) -> Option<BoxFuture<'a, Result<Box<RawValue>, StepError>>>;
}

/// The handlers of one flow together with its state.
struct OfFlow<S: 'static> {
    definition: &'static FlowDefinition<'static>,
    handlers: &'static [Handler<S>],
    state: S,
}

pub(crate) fn of<F: Flow>(state: F::State) -> Arc<dyn Handlers> {
    Arc::new(OfFlow {
        definition: F::DEFINITION,
        handlers: F::HANDLERS,
        state,
    })
}

impl<S: Send + Sync + 'static> Handlers for OfFlow<S> {
    fn definition(&self) -> &'static FlowDefinition<'static> {
        self.definition
    }

    fn call<'a>(
        &'a self,
        step_index: usize,
        task: &'a Task<'a>,
    ) -> Option<BoxFuture<'a, Result<Box<RawValue>, StepError>>> {
        let handler = self.handlers.get(step_index)?;
        Some(handler(task, &self.state))
    }
}
