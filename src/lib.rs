//! Workflows written as annotated async functions, checked by the compiler, run by Postgres.
#![cfg_attr(docsrs, feature(doc_cfg))]

pub use pgflow_macros::{flow, step};
pub use pgflow_runtime::{
    client::{self, Client, StartFlow},
    context::StepContext,
    definition,
    flow::{
        BoxError, DecodeError, EncodeError, Flow, OneQueue, Permanent, QueueModeMarker,
        QueuePerStep, RetryAfter, StepError, StepId, StepQueued, StepResult,
    },
    startup::{self, StartupError},
    worker::{self, FlowWorker, WorkerError, WorkerHandle},
};

#[doc(hidden)]
pub use pgflow_runtime::__private;

/// What a module with a flow needs: `use pgflow::prelude::*;`.
pub mod prelude {
    pub use crate::{
        Client, Flow, FlowWorker, Permanent, RetryAfter, StartFlow, StepContext, StepError, StepId, StepQueued, StepResult, flow,
        step,
    };
}
