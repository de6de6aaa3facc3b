//! A flow's handlers over a state that the test keeps.

use pgflow_definition::FlowDefinition;
use serde_json::value::RawValue;

use crate::{
    flow::{BoxFuture, Flow, StepError, Task},
    worker::handlers::Handlers,
};

pub(super) struct Borrowed<'s, F: Flow> {
    pub(super) state: &'s F::State,
}

impl<F: Flow> Handlers for Borrowed<'_, F> {
    fn definition(&self) -> &'static FlowDefinition<'static> {
        F::DEFINITION
    }

    fn call<'a>(
        &'a self,
        step_index: usize,
        task: &'a Task<'a>,
    ) -> Option<BoxFuture<'a, Result<Box<RawValue>, StepError>>> {
        let handler = F::HANDLERS.get(step_index)?;
        Some(handler(task, self.state))
    }
}
