//! Definitions, made in the words of the attributes.
//!
//! Generated code places each method at the argument that it stands for, so editors show its
//! documentation there.

use pgflow_definition::{
    Condition, ElementFailure, FlowDefinition, FlowOptions, QueueMode, RunsOn, SkipMode,
    StepDefinition, StepKind, StepOptions,
};

/// A step of a definition and the arguments of its `#[step(..)]`.
#[derive(Debug)]
pub struct Step(StepDefinition<'static>);

/// A step without arguments.
pub const fn step(slug: &'static str) -> Step {
    Step(StepDefinition {
        slug,
        kind: StepKind::Single,
        depends_on: &[],
        options: StepOptions {
            max_attempts: None,
            base_delay: None,
            max_delay: None,
            give_up_after: None,
            timeout: None,
            start_delay: None,
        },
        condition: Condition {
            required: None,
            forbidden: None,
        },
        when_unmet: SkipMode::Skip,
        when_exhausted: SkipMode::Fail,
        on_element_failure: ElementFailure::Fail,
        runs_on: None,
        needs_flow_input: false,
    })
}

impl Step {
    /// `slug = "fetch_v1"`: the step's name in the database; the function's name by default.
    pub const fn slug(mut self, slug: &'static str) -> Self {
        self.0.slug = slug;
        self
    }

    /// `depends_on = [a, b]`: run after these steps; each is available as a parameter of its name.
    pub const fn depends_on(mut self, slugs: &'static [&'static str]) -> Self {
        self.0.depends_on = slugs;
        self
    }

    /// `map = step` or `map = input`: one task per element of that list; the element is the
    /// parameter `item`.
    pub const fn map(mut self, source: &'static [&'static str]) -> Self {
        self.0.kind = StepKind::Map;
        self.0.depends_on = source;
        self
    }

    /// `max_attempts = 3`: how often a task is tried, the first attempt included; at least 1, by
    /// default the flow's.
    pub const fn max_attempts(mut self, attempts: u32) -> Self {
        self.0.options.max_attempts = Some(attempts);
        self
    }

    /// `base_delay = "5s"`: the delay that the back-off between attempts starts from; at least 1 s,
    /// by default the flow's.
    pub const fn base_delay(mut self, seconds: u32) -> Self {
        self.0.options.base_delay = Some(seconds);
        self
    }

    /// `max_delay = "1h"`: the longest delay between attempts; at least 1 s, by default the flow's.
    pub const fn max_delay(mut self, seconds: u32) -> Self {
        self.0.options.max_delay = Some(seconds);
        self
    }

    /// `give_up_after = "1d"`: how long a task may be postponed without an attempt that counts; at
    /// least 1 s, by default the flow's.
    pub const fn give_up_after(mut self, seconds: u32) -> Self {
        self.0.options.give_up_after = Some(seconds);
        self
    }

    /// `timeout = "60s"`: how long an attempt may run; at least 3 s, by default the flow's.
    pub const fn timeout(mut self, seconds: u32) -> Self {
        self.0.options.timeout = Some(seconds);
        self
    }

    /// `start_delay = "5m"`: the wait before the first attempt; none by default.
    pub const fn start_delay(mut self, seconds: u32) -> Self {
        self.0.options.start_delay = Some(seconds);
        self
    }

    /// `if = { .. }`: run only if the input contains this.
    pub const fn r#if(mut self, pattern: &'static str) -> Self {
        self.0.condition.required = Some(pattern);
        self
    }

    /// `if_not = { .. }`: run only if the input does not contain this.
    pub const fn if_not(mut self, pattern: &'static str) -> Self {
        self.0.condition.forbidden = Some(pattern);
        self
    }

    /// `when_unmet = "skip"`: what happens when the condition does not hold: `"skip"` (the
    /// default), `"skip-cascade"` or `"fail"`.
    pub const fn when_unmet(mut self, mode: SkipMode) -> Self {
        self.0.when_unmet = mode;
        self
    }

    /// `when_exhausted = "fail"`: what happens when the last attempt has failed: `"fail"` (the
    /// default), `"skip"` or `"skip-cascade"`.
    pub const fn when_exhausted(mut self, mode: SkipMode) -> Self {
        self.0.when_exhausted = mode;
        self
    }

    /// `on_element_failure = "null"`: an element whose last attempt has failed is `None` in the
    /// list of this map step, `Vec<Option<T>>` for its dependents; `"fail"` (the default):
    /// `when_exhausted` decides.
    pub const fn on_element_failure(mut self, mode: ElementFailure) -> Self {
        self.0.on_element_failure = mode;
        self
    }

    /// `on = failure` or `on = end`: run when the run has failed, or has ended in any way; that end
    /// is the parameter `end`.
    pub const fn on(mut self, end: RunsOn) -> Self {
        self.0.runs_on = Some(end);
        self
    }

    /// Marks a step with a parameter `input`.
    pub const fn takes_input(mut self) -> Self {
        self.0.needs_flow_input = true;
        self
    }

    /// The step as the definition lists it.
    pub const fn done(self) -> StepDefinition<'static> {
        self.0
    }
}

/// A definition without steps and the arguments of its `#[flow(..)]`.
#[derive(Debug)]
pub struct Flow(FlowDefinition<'static>);

/// A flow without arguments.
pub const fn flow(slug: &'static str) -> Flow {
    Flow(FlowDefinition {
        slug,
        queue_mode: QueueMode::Flow,
        options: FlowOptions {
            max_attempts: None,
            base_delay: None,
            max_delay: None,
            give_up_after: None,
            timeout: None,
        },
        steps: &[],
    })
}

impl Flow {
    /// `input = Type`: what a run starts from.
    pub const fn input(self) -> Self {
        self
    }

    /// `state = Type`: what steps can take as `state`.
    pub const fn state(self) -> Self {
        self
    }

    /// `slug = "my_flow_v2"`: the flow's name in the database; the type's name in snake case by
    /// default.
    pub const fn slug(mut self, slug: &'static str) -> Self {
        self.0.slug = slug;
        self
    }

    /// One private queue, and so one worker pool, per step.
    pub const fn with_step_queues(mut self) -> Self {
        self.0.queue_mode = QueueMode::Step;
        self
    }

    /// `step_enum = MyStep`: the name of the generated step enum, `Step` by default.
    pub const fn step_enum(self) -> Self {
        self
    }

    /// `output = MyOutput`: the name of the generated output struct.
    pub const fn output(self) -> Self {
        self
    }

    /// `output_derive = [PartialEq, Clone]`: derives for the output struct.
    pub const fn output_derive(self) -> Self {
        self
    }

    /// `vis = pub(crate)`: the visibility of the step enum and the output struct, `pub` by default.
    pub const fn vis(self) -> Self {
        self
    }

    /// `max_attempts = 3`: how often a task is tried, the first attempt included; at least 1, 3 by
    /// default; steps can set their own.
    pub const fn max_attempts(mut self, attempts: u32) -> Self {
        self.0.options.max_attempts = Some(attempts);
        self
    }

    /// `base_delay = "5s"`: the delay that the back-off between attempts starts from; at least 1 s,
    /// 5 s by default; steps can set their own.
    pub const fn base_delay(mut self, seconds: u32) -> Self {
        self.0.options.base_delay = Some(seconds);
        self
    }

    /// `max_delay = "1h"`: the longest delay between attempts; at least 1 s, 1 h by default; steps
    /// can set their own.
    pub const fn max_delay(mut self, seconds: u32) -> Self {
        self.0.options.max_delay = Some(seconds);
        self
    }

    /// `give_up_after = "1d"`: how long a task may be postponed without an attempt that counts; at
    /// least 1 s, 1 day by default; steps can set their own.
    pub const fn give_up_after(mut self, seconds: u32) -> Self {
        self.0.options.give_up_after = Some(seconds);
        self
    }

    /// `timeout = "60s"`: how long an attempt may run; at least 3 s, 60 s by default; steps can set
    /// their own.
    pub const fn timeout(mut self, seconds: u32) -> Self {
        self.0.options.timeout = Some(seconds);
        self
    }

    /// The definition with its steps, in topological order.
    pub const fn steps(
        mut self,
        steps: &'static [StepDefinition<'static>],
    ) -> FlowDefinition<'static> {
        self.0.steps = steps;
        self.0
    }
}
