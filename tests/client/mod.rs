//! Callers: they start runs, wait for them and look at them.

mod ends;
mod start;
mod start_many;
mod wait;
