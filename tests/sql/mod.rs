//! The SQL functions, through SQL only: one module per function, and the races between them.

mod add_step;
mod claim_tasks;
mod create_flow;
mod ensure_flow_compiled;
mod get_run_with_states;
mod is_valid_slug;
mod start_flow;
mod start_ready_steps;
