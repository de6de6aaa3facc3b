//! The calls into schema `pgflow`: one file per duty, and the only place with SQL text.
//!
//! Every change of state is one function of that schema. This module calls functions and reads
//! tables; it writes no table.

pub(crate) mod advice;
pub(crate) mod claim;
pub(crate) mod complete;
pub(crate) mod coverage;
pub(crate) mod definition;
pub(crate) mod delete_flow;
pub(crate) mod environment;
pub mod error;
pub(crate) mod explain;
pub(crate) mod fail;
pub(crate) mod heartbeat;
pub(crate) mod history;
pub(crate) mod idle;
pub(crate) mod inspect;
pub(crate) mod inspect_flow;
mod kept;
pub(crate) mod limit;
pub(crate) mod maintenance;
pub(crate) mod operations;
pub(crate) mod prune;
pub(crate) mod queues;
pub(crate) mod release;
pub(crate) mod retry;
pub(crate) mod rights;
pub(crate) mod run;
pub(crate) mod testing;
pub(crate) mod watch;
pub(crate) mod worker;
pub(crate) mod written_by;

pub use error::{CallError, Refusal, RefusalCode};

use serde_json::value::RawValue;
use sqlx::types::Json;

/// A `jsonb` value that is passed through without a second parse.
pub(crate) type RawJson = Json<Box<RawValue>>;
