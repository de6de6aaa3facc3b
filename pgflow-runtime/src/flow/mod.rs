//! The runtime's view of a flow: its trait, its errors, and the way from stored JSON to the
//! parameters of a handler.
//!
//! `#[flow]` implements [`Flow`] and builds on the parts collected in `__private`; the worker calls
//! the result.

#[doc(hidden)]
pub mod __private;

mod decode;
mod encode;
mod fields;
mod finish;
mod map_source;
mod marker;
mod message;
mod outputs;
mod place;
mod queues;
mod redact;
mod run;
mod run_end;
mod slot;
mod step_error;
mod stored;
mod take;
mod take_output;
mod task;
#[cfg(test)]
mod tests;
mod traits;
mod unreadable;
mod watch;

pub use decode::DecodeError;
pub(crate) use decode::decode;
pub use encode::EncodeError;
pub(crate) use encode::MAX_SIZE;
pub(crate) use marker::Retry;
pub use marker::{Permanent, Postpone, RetryAfter};
pub(crate) use message::{chain as error_text, stored_text};
pub use outputs::Outputs;
#[doc(hidden)]
pub use queues::AcceptsStep;
pub use queues::{OneQueue, QueueModeMarker, QueuePerStep, StepQueued};
pub use run_end::{RunEnd, RunStatus};
pub use step_error::{BoxError, StepError, StepResult};
pub(crate) use stored::{encode, input_fields};
pub use task::Task;
#[doc(hidden)]
pub use traits::SharedState;
pub(crate) use traits::build_of;
pub use traits::{BoxFuture, Flow, Handler, HandlerFuture, StepId};
pub(crate) use unreadable::{Builds, Source, Unreadable};
