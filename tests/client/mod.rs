//! Callers: they start runs, wait for them and look at them.

mod start;
mod wait;
