//! Where conditions may stand, and the bounds of options.

use super::Report;
use crate::options::OptionName::{self, BaseDelay, MaxAttempts, StartDelay, Timeout};
use crate::problem::{Part, ProblemKind};

pub(super) fn check(report: &mut Report<'_>) {
    for (index, step) in report.steps() {
        for (part, pattern) in [
            (Part::Required, step.condition.required),
            (Part::Forbidden, step.condition.forbidden),
        ] {
            if pattern.is_some() && step.is_root_map() {
                report.on_step(index, part, ProblemKind::ConditionOnRootMap);
            }
        }
    }

    let flow = report.flow.options;
    let options = [
        (MaxAttempts, flow.max_attempts),
        (BaseDelay, flow.base_delay),
        (Timeout, flow.timeout),
    ];
    for (part, kind) in out_of_bounds(&options) {
        report.on_flow(part, kind);
    }
    for (index, step) in report.steps() {
        let step = step.options;
        let options = [
            (MaxAttempts, step.max_attempts),
            (BaseDelay, step.base_delay),
            (Timeout, step.timeout),
            (StartDelay, step.start_delay),
        ];
        for (part, kind) in out_of_bounds(&options) {
            report.on_step(index, part, kind);
        }
    }
}

fn out_of_bounds(
    options: &[(OptionName, Option<u32>)],
) -> impl Iterator<Item = (Part, ProblemKind)> {
    options.iter().filter_map(|&(name, value)| {
        let value = value?;
        let problem = name.check(value).err()?;
        Some((
            Part::Option(name),
            ProblemKind::Option {
                name,
                value,
                problem,
            },
        ))
    })
}
