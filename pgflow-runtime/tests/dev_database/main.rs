//! The development database: what it serves, and that nothing of it outlives its owner.
#![cfg(unix)]

mod kept;
mod lifetime;
mod owner;
mod place;
mod private;
mod users;
