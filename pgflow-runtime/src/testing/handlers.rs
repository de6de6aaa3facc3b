//! A flow's handlers over a state that the test keeps.

use std::{any::Any, marker::PhantomData};

use pgflow_definition::FlowDefinition;
use serde_json::value::RawValue;

use crate::{
    flow::{BoxFuture, Flow, StepError, Task, build_of, input_fields},
    worker::handlers::{Handlers, call},
};

pub(super) struct Borrowed<'s, F: Flow> {
    pub(super) state: &'s (dyn Any + Send + Sync),
    pub(super) flow: PhantomData<fn() -> F>,
}

impl<F: Flow> Handlers for Borrowed<'_, F> {
    fn definition(&self) -> &'static FlowDefinition<'static> {
        F::DEFINITION
    }

    fn build(&self) -> Option<&'static str> {
        build_of::<F>()
    }

    fn input_fields(&self) -> Option<&'static [&'static str]> {
        input_fields::<F>()
    }

    fn call<'a>(
        &'a self,
        step_index: usize,
        task: &'a Task<'a>,
    ) -> Option<BoxFuture<'a, Result<Box<RawValue>, StepError>>> {
        let handlers = F::__HANDLERS;
        call(handlers, self.state, step_index, task)
    }
}
