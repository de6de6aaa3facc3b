//! The possible faults of a definition, as data: the step, its part, and the fault.

mod text;

use crate::RunsOn;
use crate::options::{OptionName, OptionProblem};
use crate::slug::SlugProblem;

/// One mistake in a definition. `Display` says what is wrong, what was expected and how to fix it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The step or flow with the mistake.
    pub subject: Subject,
    /// The part with the mistake.
    pub part: Part,
    /// The kind of the mistake.
    pub kind: ProblemKind,
}

/// The flow, or one of its steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// The flow as a whole.
    Flow {
        /// Its slug.
        slug: String,
    },
    /// One step.
    Step {
        /// Its position in the definition.
        index: usize,
        /// Its slug.
        slug: String,
    },
}

/// The part of a flow or step that is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The slug.
    Slug,
    /// The queue mode.
    QueueMode,
    /// The name of a queue, derived from slugs.
    QueueName,
    /// All dependencies of the step together.
    Dependencies,
    /// One entry of `depends_on`, by position.
    Dependency(usize),
    /// The step that a map step maps over: its only dependency.
    MapSource,
    /// The mode `on_element_failure`.
    ElementFailure,
    /// The pattern `if`.
    Required,
    /// The pattern `if_not`.
    Forbidden,
    /// The effect of an unmet condition.
    WhenUnmet,
    /// The effect of exhausted attempts.
    WhenExhausted,
    /// The end of the run that the step waits for.
    RunsOn,
    /// The value of an option.
    Option(OptionName),
}

/// The kinds of mistakes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProblemKind {
    /// A flow or step can't have this slug.
    Slug(SlugProblem),
    /// The slug of the step is one of the [names that parameters are bound
    /// by](crate::slug::BINDING_NAMES).
    BindingName,
    /// An earlier step has the same slug, ignoring case.
    DuplicateStepSlug {
        /// Position of the earlier step.
        first: usize,
        /// Slug of the earlier step, as it is spelled there.
        first_slug: String,
    },
    /// Queue mode `step` without a step.
    StepQueuesWithoutSteps,
    /// The slug of a plain flow is too long for the name of its queue.
    DefaultQueueNameTooLong {
        /// The name.
        queue: String,
    },
    /// The flow's slug leaves no room for the name of any step queue.
    FlowQueueNameTooLong {
        /// Slug of the first step.
        step: String,
        /// Position of that step.
        index: usize,
        /// The name of its queue made of both slugs.
        readable: String,
        /// The name of its queue made of the flow's slug and the index.
        fallback: String,
    },
    /// Neither name that the step's queue could have fits.
    StepQueueNameTooLong {
        /// The name made of both slugs.
        readable: String,
        /// The name made of the flow's slug and the step's index.
        fallback: String,
    },
    /// A dependency that is not a step of the flow.
    UnknownDependency {
        /// The slug that was written.
        name: String,
        /// The step whose slug differs in case only.
        differs_in_case: Option<String>,
    },
    /// The step depends on itself.
    SelfDependency,
    /// A dependency that is listed before.
    DuplicateDependency {
        /// The dependency.
        name: String,
    },
    /// Steps that wait for each other, once for each group of such steps. Each depends on the next,
    /// the last on the first.
    Cycle(Vec<CycleEdge>),
    /// A map step with several dependencies.
    MapArity {
        /// The number of them.
        count: usize,
    },
    /// The step stands before a dependency.
    OutOfOrder {
        /// The first such dependency.
        dependency: String,
    },
    /// A single step is to do without elements that fail.
    NoElements,
    /// An end step has something that only a step of the run can have.
    EndStepWithPart {
        /// The end that it runs on.
        runs_on: RunsOn,
    },
    /// A second step runs on the same end.
    DuplicateEndStep {
        /// The end.
        runs_on: RunsOn,
        /// Slug of the first one.
        first: String,
    },
    /// A step depends on an end step, which runs when all others have ended.
    EndStepAsDependency {
        /// The dependency.
        name: String,
        /// The end that it runs on.
        runs_on: RunsOn,
    },
    /// A pattern of a condition that can't be, or could never hold.
    Condition(ConditionProblem),
    /// The value of an option is out of bounds.
    Option {
        /// The option.
        name: OptionName,
        /// The value.
        value: u32,
        /// The bound that is violated.
        problem: OptionProblem,
    },
}

/// The fault of a pattern. All but the first are found with feature `shape` only, since they need
/// its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConditionProblem {
    /// The step maps over the flow's input: a list, which contains no object.
    OnRootMap,
    /// The pattern is not JSON.
    NotJson {
        /// The message of the JSON parser.
        message: String,
    },
    /// The pattern is JSON, but not an object.
    NotAnObject {
        /// The kind of value that was found.
        found: &'static str,
    },
    /// The pattern holds the character U+0000, which Postgres can't store.
    HoldsNul,
    /// The pattern holds a number that would not be sent as it is written.
    InexactNumber {
        /// The number that would be sent.
        number: String,
    },
    /// A key of the pattern is not a dependency of the step.
    NotADependency {
        /// The key.
        key: String,
        /// The dependencies that could be keys.
        dependencies: Vec<String>,
    },
}

/// One step of a cycle, and where it names the next one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CycleEdge {
    /// Position of the step.
    pub step: usize,
    /// Its slug.
    pub slug: String,
    /// Position in its `depends_on` of the next step of the cycle.
    pub dependency: usize,
}

impl Problem {
    /// The position of the step whose mistake this is; `None` when it is the flow's.
    pub fn step(&self) -> Option<usize> {
        match self.subject {
            Subject::Flow { .. } => None,
            Subject::Step { index, .. } => Some(index),
        }
    }
}

impl ProblemKind {
    /// A stable name for the kind, the same that the test vectors use.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Slug(_) => "invalid_slug",
            Self::BindingName => "binding_name",
            Self::DuplicateStepSlug { .. } => "duplicate_step_slug",
            Self::StepQueuesWithoutSteps => "step_queues_without_steps",
            Self::DefaultQueueNameTooLong { .. } => "default_queue_name_too_long",
            Self::FlowQueueNameTooLong { .. } => "flow_queue_name_too_long",
            Self::StepQueueNameTooLong { .. } => "step_queue_name_too_long",
            Self::UnknownDependency { .. } => "unknown_dependency",
            Self::SelfDependency => "self_dependency",
            Self::DuplicateDependency { .. } => "duplicate_dependency",
            Self::Cycle(_) => "cycle",
            Self::MapArity { .. } => "map_arity",
            Self::OutOfOrder { .. } => "out_of_order",
            Self::NoElements => "no_elements",
            Self::EndStepWithPart { .. } => "end_step_with_part",
            Self::DuplicateEndStep { .. } => "duplicate_end_step",
            Self::EndStepAsDependency { .. } => "end_step_as_dependency",
            Self::Condition(ConditionProblem::OnRootMap) => "condition_on_root_map",
            Self::Condition(ConditionProblem::NotJson { .. }) => "condition_not_json",
            Self::Condition(ConditionProblem::NotAnObject { .. }) => "condition_not_an_object",
            Self::Condition(ConditionProblem::HoldsNul) => "condition_holds_nul",
            Self::Condition(ConditionProblem::InexactNumber { .. }) => "condition_inexact_number",
            Self::Condition(ConditionProblem::NotADependency { .. }) => {
                "condition_not_a_dependency"
            }
            Self::Option { .. } => "option_out_of_bounds",
        }
    }
}
