//! Tests of flows and of their steps.
//!
//! | what | with |
//! |---|---|
//! | a step by itself | its function, which is called as it stands; for its `ctx` parameter, [`StepContext::for_test`](crate::context::StepContext::for_test) |
//! | a whole flow over a real database | [`run_to_end`], without a worker |

mod claims;
mod context;
mod driver;
mod error;
mod handlers;
mod report;
mod run_to_end;
mod workers;

pub use context::StepContextBuilder;
pub use error::RunToEndError;
pub use report::{AttemptOutcome, AttemptReport, EndedRun, TaskReport, TaskStatus};
pub use run_to_end::{RunToEnd, run_to_end};
