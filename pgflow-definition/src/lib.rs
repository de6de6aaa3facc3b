//! The rules of pgflow definitions.
//!
//! A [`FlowDefinition`] is the complete ordered description of a flow: its slug, queue mode,
//! options and steps. Three parties judge it by the same rules: the `#[flow]` macro while it
//! compiles, the worker before it connects, and Postgres, which has the last word. This crate holds
//! the rules for the first two. It does no I/O, and everything in a definition is borrowed, so that
//! generated code keeps it in a `const`.
//!
//! ```
//! use pgflow_definition::*;
//!
//! const PARSE: StepDefinition<'static> = StepDefinition {
//!     slug: "parse",
//!     kind: StepKind::Single,
//!     depends_on: &[],
//!     options: StepOptions {
//!         max_attempts: None,
//!         base_delay: None,
//!         max_delay: None,
//!         give_up_after: None,
//!         timeout: None,
//!         start_delay: None,
//!     },
//!     condition: Condition { required: None, forbidden: None },
//!     when_unmet: SkipMode::Skip,
//!     when_exhausted: SkipMode::Fail,
//!     on_element_failure: ElementFailure::Fail,
//!     runs_on: None,
//!     needs_flow_input: true,
//! };
//! const AUDIT: FlowDefinition<'static> = FlowDefinition {
//!     slug: "crate_audit",
//!     queue_mode: QueueMode::Step,
//!     options: FlowOptions {
//!         max_attempts: Some(5),
//!         base_delay: None,
//!         max_delay: None,
//!         give_up_after: None,
//!         timeout: None,
//!     },
//!     steps: &[PARSE],
//! };
//!
//! assert!(AUDIT.problems().is_empty());
//! assert_eq!(AUDIT.route_map().unwrap()[0].queue, "crate_audit__parse");
//! ```
//!
//! # Features
//!
//! `shape`: the definition as the JSON that startup sends to Postgres, and with it the rules about
//! the text of conditions. The macro does without: it writes that text itself, from tokens that it
//! has checked.

mod check;
#[cfg(feature = "shape")]
mod condition;
mod definition;
pub mod duration;
pub mod graph;
pub mod mermaid;
pub mod options;
mod problem;
pub mod queue;
#[cfg(feature = "shape")]
mod shape;
pub mod skip;
pub mod slug;

pub use definition::{
    Condition, ElementFailure, FlowDefinition, FlowOptions, QueueMode, RunsOn, SkipMode,
    StepDefinition, StepKind, StepOptions,
};
pub use options::{DEFAULT_BASE_DELAY, DEFAULT_MAX_ATTEMPTS, DEFAULT_TIMEOUT, NO_TIMEOUT};
pub use problem::{ConditionProblem, CycleEdge, Part, Problem, ProblemKind, Subject};
pub use queue::QueueRoute;
