//! The mistakes of a flow, in words, each at the token that has to change.

mod conditions;
mod definition;
mod dependencies;
mod flow;
mod params;
mod signature;
mod unknown_param;

pub(crate) use definition::Cycle;
pub(crate) use flow::is_possible;

use crate::{errors::Errors, model::Flow, parse::FlowImpl};

/// Reports every mistake. Cycles are returned: only code that does not compile can underline each
/// of their names.
pub(crate) fn check(flow: &Flow<'_>, source: &FlowImpl, errors: &mut Errors) -> Vec<Cycle> {
    flow::check(flow, source, errors);
    for step in &flow.steps {
        signature::check(step, errors);
    }
    let cycles = definition::check(flow, errors);
    for (index, step) in flow.steps.iter().enumerate() {
        dependencies::check(flow, index, errors);
        conditions::check(flow, step, errors);
        params::check(flow, step, errors);
    }
    cycles
}
