//! Callers: they start runs, wait for them, follow them and look at them.

mod callers;
mod ends;
mod events;
mod start;
mod start_many;
mod wait;
