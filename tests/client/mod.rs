//! Callers: they start runs, wait for them, follow them and look at them.

mod callers;
mod ends;
mod events;
mod many_waits;
mod start;
mod start_many;
mod wait;
