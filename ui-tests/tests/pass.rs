//! The cases of `pass/`: they compile without a warning, and do what they say.

#[path = "../pass/attributes.rs"]
mod attributes;
#[path = "../pass/elements.rs"]
mod elements;
#[path = "../pass/end_steps.rs"]
mod end_steps;
#[path = "../pass/fifty_steps.rs"]
mod fifty_steps;
#[path = "../pass/items.rs"]
mod items;
#[path = "../pass/lints.rs"]
mod lints;
#[path = "../pass/names.rs"]
mod names;
#[path = "../pass/params.rs"]
mod params;
#[path = "../pass/readme.rs"]
mod readme;
#[path = "../pass/scopes.rs"]
mod scopes;
#[path = "../pass/shadowed.rs"]
mod shadowed;
#[path = "../pass/states.rs"]
mod states;
#[path = "../pass/step_queues.rs"]
mod step_queues;
#[path = "../pass/types.rs"]
mod types;
