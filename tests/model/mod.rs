//! The SQL core against a pure model of it: random flows, several runs of each under everything
//! that workers do, in random order.
//!
//! After each call the complete state, the call's answer and its events must be what the model
//! says, and the invariants I1 to I8 must hold on what was read. What fails is shrunk to a small
//! flow and a short list of calls.
//!
//! `PGFLOW_MODEL_RUNS=n` drives n runs instead of the usual number; `PGFLOW_MODEL_SEED=n` starts
//! with that case. A failure prints the command that repeats it.

mod actions;
mod call;
mod compare;
mod containment;
mod counters;
mod driver;
mod events;
mod flow;
mod generator;
mod invariants;
mod invariants_fail;
mod machine;
mod rows;
mod rules;
mod runs;
mod search;
mod setup;
mod shrink;
mod shrinking;
mod snapshot;
mod sql;
mod state;
