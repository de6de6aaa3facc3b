//! The calls of operators: removal of old runs and of flows, and the reason why a step is not
//! running.

mod delete_flow;
mod explain_step;
mod prune;
mod recovery;
