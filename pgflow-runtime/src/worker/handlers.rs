//! A flow's handlers with the flow's type erased, so that the worker is compiled once.

use std::{any::Any, sync::Arc};

use pgflow_definition::FlowDefinition;
use serde_json::value::RawValue;

use crate::flow::{
    __private::{Handler, Task},
    BoxFuture, Flow, SharedState, StepError, build_of, input_fields,
};

/// The handlers of a worker.
pub(crate) trait Handlers: Send + Sync {
    fn definition(&self) -> &'static FlowDefinition<'static>;

    /// The build of the application by default, where it has a name.
    fn build(&self) -> Option<&'static str>;

    /// The names of the fields of the flow's input in JSON, where they are known.
    fn input_fields(&self) -> Option<&'static [&'static str]>;

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
    build: Option<&'static str>,
    input_fields: fn() -> Option<&'static [&'static str]>,
    handlers: &'static [Handler<S>],
    state: Arc<dyn Any + Send + Sync>,
}

pub(crate) fn of<F: Flow>(state: F::State) -> Arc<dyn Handlers> {
    Arc::new(OfFlow {
        definition: F::DEFINITION,
        build: build_of::<F>(),
        input_fields: input_fields::<F>,
        handlers: F::__HANDLERS,
        state: state.share(),
    })
}

impl<S: 'static> Handlers for OfFlow<S> {
    fn definition(&self) -> &'static FlowDefinition<'static> {
        self.definition
    }

    fn build(&self) -> Option<&'static str> {
        self.build
    }

    fn input_fields(&self) -> Option<&'static [&'static str]> {
        (self.input_fields)()
    }

    fn call<'a>(
        &'a self,
        step_index: usize,
        task: &'a Task<'a>,
    ) -> Option<BoxFuture<'a, Result<Box<RawValue>, StepError>>> {
        call(self.handlers, &*self.state, step_index, task)
    }
}

/// Calls the handler of a step with a state that was shared as an `S`.
pub(crate) fn call<'a, S: 'static>(
    handlers: &[Handler<S>],
    state: &'a (dyn Any + Send + Sync),
    step_index: usize,
    task: &'a Task<'a>,
) -> Option<BoxFuture<'a, Result<Box<RawValue>, StepError>>> {
    let handler = handlers.get(step_index)?;
    let state = state.downcast_ref().expect("the state of these handlers");
    Some(handler(task, state))
}
