//! The cases of `pass/`: they compile without a warning, and do what they say.

#[path = "../pass/readme.rs"]
mod readme;
