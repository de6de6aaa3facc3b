//! The data that startup sends to the database about a worker and its flow.

use pgflow_definition::FlowDefinition;
use serde_json::{Value, json};

use super::StartupError;

/// The subject of a worker: a flow, or one step of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target {
    pub(crate) definition: &'static FlowDefinition<'static>,
    /// The index of the only step that the worker serves; none for a flow with one queue.
    pub(crate) step: Option<usize>,
}

impl Target {
    pub(crate) fn step_slug(self) -> Option<&'static str> {
        self.step.map(|step| self.definition.steps[step].slug)
    }

    /// The queue that the worker takes tasks from; of a valid definition only, see [`Plan`].
    pub(crate) fn queue_name(self) -> String {
        let Self { definition, step } = self;
        step.map_or_else(
            || definition.default_queue(),
            |step| {
                let slug = definition.steps[step].slug;
                pgflow_definition::queue::step_queue(definition.slug, slug, step)
            },
        )
    }
}

/// A target whose definition is valid, in the words of the database.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) target: Target,
    pub(super) shape: Value,
    pub(super) routes: Value,
    pub(super) queue_name: String,
    /// The steps of the worker whose tasks come with the flow's input.
    pub(super) flow_input_steps: Vec<&'static str>,
}

impl Plan {
    pub(super) fn new(target: Target) -> Result<Self, StartupError> {
        let Target { definition, step } = target;
        let invalid = |problems| StartupError::InvalidDefinition {
            flow: definition.slug.to_owned(),
            problems,
        };
        let shape = definition.shape().map_err(invalid)?;
        let routes = definition.route_map().map_err(invalid)?;
        let queue_name = match step {
            Some(step) => routes[step].queue.clone(),
            None => definition.default_queue(),
        };
        let flow_input_steps = definition
            .steps
            .iter()
            .enumerate()
            .filter(|(index, taken)| {
                taken.needs_flow_input && step.is_none_or(|step| step == *index)
            })
            .map(|(_, step)| step.slug)
            .collect();
        Ok(Self {
            target,
            shape,
            routes: routes
                .iter()
                .map(|route| json!({"step": route.step, "queue": route.queue}))
                .collect(),
            queue_name,
            flow_input_steps,
        })
    }
}
