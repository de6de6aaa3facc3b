//! Workflows written as annotated async functions, checked by the compiler, run by Postgres.
#![cfg_attr(docsrs, feature(doc_cfg))]

pub use pgflow_macros::{flow, step};
pub use pgflow_runtime::{
    context::StepContext,
    definition,
    flow::{
        BoxError, DecodeError, EncodeError, Flow, OneQueue, Permanent, QueueModeMarker,
        QueuePerStep, RetryAfter, StepError, StepId, StepQueued, StepResult,
    },
};

#[doc(hidden)]
pub use pgflow_runtime::__private;

/// What a module with a flow needs: `use pgflow::prelude::*;`.
pub mod prelude {
    pub use crate::{
        Flow, Permanent, RetryAfter, StepContext, StepError, StepId, StepQueued, StepResult, flow,
        step,
    };
}
