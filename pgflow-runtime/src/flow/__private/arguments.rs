//! What editors show for the arguments of the attributes: the macro mentions each argument as a path to one of these.
//!
//! Written by a test of `pgflow-macros` from its table of arguments.
#![allow(non_upper_case_globals)]

/// The arguments of `#[step(..)]`.
pub mod step {
    /// `depends_on = [a, b]`: run after these steps; each is available as a parameter of its name.
    pub const depends_on: () = ();
    /// `map = step` or `map = input`: one task per element of that list; the element is the parameter `item`.
    pub const map: () = ();
    /// `slug = "fetch_v1"`: the step's name in the database; the function's name by default.
    pub const slug: () = ();
    /// `max_attempts = 3`: how often a task is tried, the first attempt included; at least 1, by default the flow's.
    pub const max_attempts: () = ();
    /// `base_delay = "5s"`: the delay that the back-off between attempts starts from; at least 1 s, by default the flow's.
    pub const base_delay: () = ();
    /// `timeout = "60s"`: how long an attempt may run; at least 3 s, by default the flow's.
    pub const timeout: () = ();
    /// `start_delay = "5m"`: the wait before the first attempt; none by default.
    pub const start_delay: () = ();
    /// `if_not = { .. }`: run only if the input does not contain this.
    pub const if_not: () = ();
    /// `when_unmet = "skip"`: what happens when the condition does not hold: `"skip"` (the default), `"skip-cascade"` or `"fail"`.
    pub const when_unmet: () = ();
    /// `when_exhausted = "fail"`: what happens when the last attempt has failed: `"fail"` (the default), `"skip"` or `"skip-cascade"`.
    pub const when_exhausted: () = ();
}

/// The arguments of `#[flow(..)]`.
pub mod flow {
    /// `input = Type`: what a run starts from.
    pub const input: () = ();
    /// `state = Type`: what steps can take as `state`.
    pub const state: () = ();
    /// `slug = "my_flow_v2"`: the flow's name in the database; the type's name in snake case by default.
    pub const slug: () = ();
    /// One private queue, and so one worker pool, per step.
    pub const with_step_queues: () = ();
    /// `max_attempts = 3`: how often a task is tried, the first attempt included; at least 1, 3 by default; steps can set their own.
    pub const max_attempts: () = ();
    /// `base_delay = "5s"`: the delay that the back-off between attempts starts from; at least 1 s, 5 s by default; steps can set their own.
    pub const base_delay: () = ();
    /// `timeout = "60s"`: how long an attempt may run; at least 3 s, 60 s by default; steps can set their own.
    pub const timeout: () = ();
    /// `step_enum = MyStep`: the name of the generated step enum, `Step` by default.
    pub const step_enum: () = ();
    /// `output = MyOutput`: the name of the generated output struct.
    pub const output: () = ();
    /// `output_derive = [Debug, Clone]`: derives for the output struct.
    pub const output_derive: () = ();
}
