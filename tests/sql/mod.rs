//! The SQL functions, through SQL only: one module per function, and the races between them.

mod create_flow;
