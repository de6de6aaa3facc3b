//! The mistakes of a flow, in words, each at the token that has to change.

mod conditions;
mod definition;
mod dependencies;
mod end_steps;
mod flow;
mod params;
mod signature;
mod unknown_param;

pub(crate) use flow::is_possible;

use crate::{errors::Errors, model::Flow, parse::FlowImpl};

/// Reports every mistake.
pub(crate) fn check(flow: &Flow<'_>, source: &FlowImpl, errors: &mut Errors) {
    flow::check(flow, source, errors);
    for step in &flow.steps {
        signature::check(step, errors);
    }
    definition::check(flow, errors);
    for (index, step) in flow.steps.iter().enumerate() {
        if step.is_end_step() {
            end_steps::check(step, errors);
        } else {
            dependencies::check(flow, index, errors);
            conditions::check(flow, step, errors);
        }
        params::check(flow, step, errors);
    }
}
