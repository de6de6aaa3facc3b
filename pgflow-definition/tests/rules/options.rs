//! Bounds of options.

use pgflow_definition::options::OptionName::{
    BaseDelay, GiveUpAfter, MaxAttempts, MaxDelay, StartDelay, Timeout,
};
use pgflow_definition::options::{
    DEFAULT_BASE_DELAY, DEFAULT_GIVE_UP_AFTER, DEFAULT_MAX_ATTEMPTS, DEFAULT_MAX_DELAY,
    DEFAULT_TIMEOUT, MAX_OPTION,
};
use pgflow_definition::{FlowDefinition, FlowOptions, Part, StepDefinition, StepOptions};

use crate::support::{flow, only_problem, outline, step};

fn step_options(
    max_attempts: u32,
    base_delay: u32,
    [max_delay, give_up_after]: [u32; 2],
    timeout: u32,
    start_delay: u32,
) -> StepDefinition<'static> {
    let options = StepOptions {
        max_attempts: Some(max_attempts),
        base_delay: Some(base_delay),
        max_delay: Some(max_delay),
        give_up_after: Some(give_up_after),
        timeout: Some(timeout),
        start_delay: Some(start_delay),
    };
    StepDefinition {
        options,
        ..step("parse", &[])
    }
}

#[test]
fn the_bounds_themselves_are_allowed() {
    for step in [
        step_options(1, 1, [1, 1], 3, 0),
        step_options(
            DEFAULT_MAX_ATTEMPTS,
            DEFAULT_BASE_DELAY,
            [DEFAULT_MAX_DELAY, DEFAULT_GIVE_UP_AFTER],
            DEFAULT_TIMEOUT,
            0,
        ),
        step_options(
            MAX_OPTION,
            MAX_OPTION,
            [MAX_OPTION; 2],
            MAX_OPTION,
            MAX_OPTION,
        ),
    ] {
        assert_eq!(flow("audit", &[step]).problems(), []);
    }
}

#[test]
fn each_value_below_its_bound_is_a_problem() {
    assert_eq!(
        outline(&flow("audit", &[step_options(0, 0, [0, 0], 2, 0)])),
        [MaxAttempts, BaseDelay, MaxDelay, GiveUpAfter, Timeout].map(|name| (
            Some(0),
            Part::Option(name),
            "option_out_of_bounds"
        ))
    );
}

#[test]
fn values_that_postgres_cannot_store_are_problems() {
    let over = MAX_OPTION + 1;
    assert_eq!(
        outline(&flow(
            "audit",
            &[step_options(over, over, [over, over], over, over)]
        )),
        [
            MaxAttempts,
            BaseDelay,
            MaxDelay,
            GiveUpAfter,
            Timeout,
            StartDelay
        ]
        .map(|name| (Some(0), Part::Option(name), "option_out_of_bounds"))
    );
}

#[test]
fn options_of_the_flow_have_the_same_bounds() {
    let options = FlowOptions {
        max_attempts: Some(0),
        base_delay: Some(0),
        max_delay: Some(0),
        give_up_after: Some(0),
        timeout: Some(0),
    };
    let steps = [step("parse", &[])];
    assert_eq!(
        outline(&FlowDefinition {
            options,
            ..flow("audit", &steps)
        }),
        [MaxAttempts, BaseDelay, MaxDelay, GiveUpAfter, Timeout].map(|name| (
            None,
            Part::Option(name),
            "option_out_of_bounds"
        ))
    );
}

#[test]
fn the_text_names_value_and_bound() {
    assert_eq!(
        only_problem(&flow("audit", &[step_options(1, 1, [1, 1], 2, 0)])).to_string(),
        "`timeout` of step `parse` is 2 seconds; the least is 3; raise it, or leave it out"
    );
    assert_eq!(
        only_problem(&flow("audit", &[step_options(u32::MAX, 1, [1, 1], 3, 0)])).to_string(),
        "`max_attempts` of step `parse` is 4294967295 attempts; the most is 2147483647; lower it, \
         or leave it out"
    );
}
