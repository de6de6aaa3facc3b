//! Names of queues.
//!
//! Every name is derived from slugs, never cut and never hashed, so that people and other languages
//! can derive it too.

use crate::{FlowDefinition, Problem, QueueMode};

/// The most characters that PGMQ takes for the name of a queue.
pub const MAX_QUEUE_NAME: usize = 47;

/// The most characters that the slug of a flow with step queues may have: with more, not even the
/// shortest fallback fits, whatever its steps are called.
pub const MAX_STEP_QUEUED_FLOW_SLUG: usize = MAX_QUEUE_NAME - "__0".len();

/// The queue of a step's tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueRoute {
    /// The slug of the step.
    pub step: String,
    /// The name of the queue.
    pub queue: String,
}

/// The queue of a flow that has one for all its steps.
pub fn default_queue(flow: &str) -> String {
    flow.to_ascii_lowercase()
}

/// The preferred name of a step's own queue.
pub fn readable(flow: &str, step: &str) -> String {
    format!("{flow}__{step}").to_ascii_lowercase()
}

/// The name of a step's own queue when the readable one is too long. Can't clash with a readable
/// name: no slug starts with a digit.
pub fn fallback(flow: &str, index: usize) -> String {
    format!("{flow}__{index}").to_ascii_lowercase()
}

/// Returns whether a queue may have this name, as far as its length goes.
pub const fn fits(name: &str) -> bool {
    name.len() <= MAX_QUEUE_NAME
}

/// The name of a step's own queue; `index` is the position of the step in the definition. The
/// readable name when that [fits], else the fallback, which may be too long as well.
pub fn step_queue(flow: &str, step: &str, index: usize) -> String {
    let readable = readable(flow, step);
    if fits(&readable) {
        readable
    } else {
        fallback(flow, index)
    }
}

impl FlowDefinition<'_> {
    /// The queue of the whole flow; in use in queue mode `flow` only.
    pub fn default_queue(&self) -> String {
        default_queue(self.slug)
    }

    /// The queue of each step, in the order of the definition.
    ///
    /// Only a valid definition has routes: otherwise all its [`problems`](Self::problems) are
    /// returned.
    pub fn route_map(&self) -> Result<Vec<QueueRoute>, Vec<Problem>> {
        let problems = self.problems();
        if !problems.is_empty() {
            return Err(problems);
        }
        let routes = self
            .steps
            .iter()
            .enumerate()
            .map(|(index, step)| QueueRoute {
                step: step.slug.into(),
                queue: match self.queue_mode {
                    QueueMode::Flow => self.default_queue(),
                    QueueMode::Step => step_queue(self.slug, step.slug, index),
                },
            });
        Ok(routes.collect())
    }
}
