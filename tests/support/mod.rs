//! The code that tests share.
//!
//! A test that needs a database takes one of its own, `TestDb::new().await`; all of them lie on one
//! private server, which ends with the test program. A test that waits does so with [`eventually`],
//! and never just sleeps.

mod cluster;
mod database;
pub(crate) mod events;
pub(crate) mod flows;
pub(crate) mod invariants;
pub(crate) mod operations;
pub(crate) mod proxy;
pub(crate) mod random_flows;
pub(crate) mod rows;
pub(crate) mod runs;
pub(crate) mod sessions;
mod wait;

pub(crate) use cluster::{memory, prepare};
pub(crate) use database::TestDb;
pub(crate) use wait::eventually;
