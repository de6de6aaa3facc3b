//! Callers: they start runs, wait for them and look at them.

mod start;
mod start_many;
mod wait;
