//! What operators call: removal of old runs and of flows, and why a step is not running.

mod delete_flow;
mod explain_step;
mod prune;
mod recovery;
