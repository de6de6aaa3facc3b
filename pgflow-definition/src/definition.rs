//! The parts of a flow.

use crate::options::OptionName;
use crate::problem::Part;
use crate::skip::SkipRule;

/// A flow: everything that identifies and describes it, steps in topological order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowDefinition<'a> {
    /// The concrete slug: it names one immutable shape and queue mode in the database.
    pub slug: &'a str,
    /// One queue for the flow, or one for each step.
    pub queue_mode: QueueMode,
    /// Defaults for the steps.
    pub options: FlowOptions,
    /// The steps, each after all that it depends on.
    pub steps: &'a [StepDefinition<'a>],
}

/// One step of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepDefinition<'a> {
    /// Unique within the flow, ignoring case.
    pub slug: &'a str,
    /// One task, or one for each element of a list.
    pub kind: StepKind,
    /// Slugs of the steps that this one waits for, as written. A map step has at most one: the step
    /// whose list it maps over.
    pub depends_on: &'a [&'a str],
    /// The options that the step sets itself.
    pub options: StepOptions,
    /// The condition under which the step runs.
    pub condition: Condition<'a>,
    /// The effect of an unmet condition.
    pub when_unmet: SkipMode,
    /// The effect when a task has used up its attempts.
    pub when_exhausted: SkipMode,
    /// The effect, on a map step, of an element whose attempts are exhausted.
    pub on_element_failure: ElementFailure,
    /// The end of the run that an end step waits for; `None` for a step that is part of the run.
    pub runs_on: Option<RunsOn>,
    /// `true` if the handler takes the flow's input, so that workers fetch it. Not part of the
    /// shape.
    pub needs_flow_input: bool,
}

/// The end of a run after which an end step runs. It changes nothing about how the run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RunsOn {
    /// The run ended without completing.
    Failure,
    /// The run ended in any way.
    End,
}

/// The distribution of steps over queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum QueueMode {
    /// Every step on the flow's queue.
    Flow,
    /// Each step on a queue of its own.
    Step,
}

/// The number of tasks of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StepKind {
    /// One.
    Single,
    /// One for each element of the list that its dependency returns, or of the flow's input when it
    /// has no dependency.
    Map,
}

/// Options of a flow, inherited by its steps; `None` stands for the default of
/// [`options`](crate::options).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FlowOptions {
    /// Attempts of a task, the first one included.
    pub max_attempts: Option<u32>,
    /// Seconds that the delays between attempts grow from.
    pub base_delay: Option<u32>,
    /// The longest delay between attempts, in seconds.
    pub max_delay: Option<u32>,
    /// Seconds for which a task may be postponed without an attempt that counts.
    pub give_up_after: Option<u32>,
    /// Seconds that an attempt may take.
    pub timeout: Option<u32>,
}

/// Options of a step; `None` inherits from the flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StepOptions {
    /// Attempts of a task, the first one included.
    pub max_attempts: Option<u32>,
    /// Seconds that the delays between attempts grow from.
    pub base_delay: Option<u32>,
    /// The longest delay between attempts, in seconds.
    pub max_delay: Option<u32>,
    /// Seconds for which a task may be postponed without an attempt that counts.
    pub give_up_after: Option<u32>,
    /// Seconds that an attempt may take.
    pub timeout: Option<u32>,
    /// Seconds between the moment when the step is ready and its first attempt.
    pub start_delay: Option<u32>,
}

/// The patterns that a step's subject is compared with: JSON objects as text. The subject is the
/// flow's input for a root step, and an object of the outputs of its dependencies, by slug, for any
/// other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Condition<'a> {
    /// `if`: the subject must contain this.
    pub required: Option<&'a str>,
    /// `if_not`: the subject must not contain this.
    pub forbidden: Option<&'a str>,
}

/// The fate of a step whose condition is unmet or whose attempts are used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SkipMode {
    /// The run fails.
    Fail,
    /// The step is skipped, and its dependents run without its output.
    Skip,
    /// The step is skipped, and all that depends on it with it.
    SkipCascade,
}

/// The effect, on a map step, of an element whose attempts are exhausted. Part of the shape, since
/// it decides the type that dependents take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum ElementFailure {
    /// A failure of the step: `when_exhausted` decides.
    #[default]
    Fail,
    /// A null in the step's output. When every element fails, so does the step.
    Null,
}

impl FlowDefinition<'_> {
    /// The position of the step with exactly this slug.
    pub fn step_index(&self, slug: &str) -> Option<usize> {
        self.steps.iter().position(|step| step.slug == slug)
    }
}

impl StepDefinition<'_> {
    /// Returns whether the step depends on nothing.
    pub const fn is_root(&self) -> bool {
        self.depends_on.is_empty()
    }

    /// Returns whether the step maps over the flow's input.
    pub const fn is_root_map(&self) -> bool {
        matches!(self.kind, StepKind::Map) && self.is_root()
    }

    /// Returns whether the subject of this step's condition may have this key at all: dependencies
    /// are the only keys that a dependent step sees; a root step sees the flow's input, whatever
    /// that is.
    pub fn may_have_condition_key(&self, key: &str) -> bool {
        self.is_root() || self.depends_on.contains(&key)
    }

    /// The ways in which this step can be skipped by itself.
    pub const fn skip_rule(&self) -> SkipRule {
        SkipRule {
            conditional: !self.condition.is_empty(),
            when_unmet: self.when_unmet,
            when_exhausted: self.when_exhausted,
        }
    }
}

impl<'a> Condition<'a> {
    /// Returns whether there is no pattern at all: the step always runs.
    pub const fn is_empty(&self) -> bool {
        self.required.is_none() && self.forbidden.is_none()
    }

    pub(crate) fn patterns(self) -> impl Iterator<Item = (Part, &'a str)> {
        [
            (Part::Required, self.required),
            (Part::Forbidden, self.forbidden),
        ]
        .into_iter()
        .filter_map(|(part, pattern)| Some((part, pattern?)))
    }
}

impl FlowOptions {
    /// The options that are set.
    pub(crate) fn set(self) -> impl Iterator<Item = (OptionName, u32)> {
        let Self {
            max_attempts,
            base_delay,
            max_delay,
            give_up_after,
            timeout,
        } = self;
        StepOptions {
            max_attempts,
            base_delay,
            max_delay,
            give_up_after,
            timeout,
            start_delay: None,
        }
        .set()
    }
}

impl StepOptions {
    /// The options that are set.
    pub(crate) fn set(self) -> impl Iterator<Item = (OptionName, u32)> {
        [
            (OptionName::MaxAttempts, self.max_attempts),
            (OptionName::BaseDelay, self.base_delay),
            (OptionName::MaxDelay, self.max_delay),
            (OptionName::GiveUpAfter, self.give_up_after),
            (OptionName::Timeout, self.timeout),
            (OptionName::StartDelay, self.start_delay),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
    }
}

impl QueueMode {
    /// The word for it in the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Flow => "flow",
            Self::Step => "step",
        }
    }
}

impl StepKind {
    /// The word for it in the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Single => "single",
            Self::Map => "map",
        }
    }
}

impl ElementFailure {
    /// The word for it in the database and in attributes.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fail => "fail",
            Self::Null => "null",
        }
    }
}

impl RunsOn {
    /// Both, in the order in which texts name them.
    pub const ALL: [Self; 2] = [Self::Failure, Self::End];

    /// The word for it in the database and in attributes.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Failure => "failure",
            Self::End => "end",
        }
    }
}

impl SkipMode {
    /// The word for it in the database and in attributes.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fail => "fail",
            Self::Skip => "skip",
            Self::SkipCascade => "skip-cascade",
        }
    }
}
