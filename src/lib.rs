#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

pub use pgflow_macros::{flow, step};
#[cfg(feature = "dev")]
#[cfg_attr(docsrs, doc(cfg(feature = "dev")))]
pub use pgflow_runtime::dev;
pub use pgflow_runtime::{
    client::{self, Client, ClientError, RunError, RunEvent, RunHandle, RunStatus, StartFlow},
    context::StepContext,
    definition,
    flow::{
        BoxError, DecodeError, EncodeError, Flow, OneQueue, Permanent, Postpone, QueueModeMarker,
        QueuePerStep, RetryAfter, RunEnd, StepError, StepId, StepQueued, StepResult,
    },
    inspect, inspect_flow, maintenance,
    migrate::{self, migrate},
    operations,
    sql::{CallError, Refusal, RefusalCode},
    startup::{self, StartupError},
    worker::{
        self, FlowWorker, StepWorker, StepWorkers, WorkerError, WorkerHandle, Workers,
        WorkersHandle,
    },
};
/// The database library in whose pools and transactions everything here runs.
pub use sqlx;

#[doc(hidden)]
pub use pgflow_runtime::__private;

#[doc = include_str!("../docs/testing.md")]
pub mod testing {
    pub use pgflow_runtime::testing::*;
}

/// The items that a module with a flow, or with its worker or caller, needs: `use
/// pgflow::prelude::*;`.
pub mod prelude {
    pub use crate::{
        Client, Flow, FlowWorker, Permanent, Postpone, RetryAfter, RunEnd, RunEvent, RunHandle,
        RunStatus, StartFlow, StepContext, StepError, StepId, StepQueued, StepResult, StepWorker,
        Workers, flow, step,
    };
}
