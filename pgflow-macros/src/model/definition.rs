//! The flow as `pgflow-definition` knows it, which holds the rules.

use pgflow_definition::{
    Condition, FlowDefinition, FlowOptions, QueueMode, StepDefinition, StepKind, StepOptions,
};

use super::{Edge, Flow, MapOver, Step};

impl<'s> Flow<'s> {
    /// Calls `judge` with the definition: everything in it is borrowed.
    ///
    /// Position `n` of its steps is the step `self.order[n]`, and position `n` of a step's
    /// dependencies is the `n`th of its edges that lead to a step.
    pub(crate) fn with_definition<T>(&self, judge: impl FnOnce(FlowDefinition<'_>) -> T) -> T {
        self.with_names(|step| &step.slug, judge)
    }

    /// The same with the names of functions in place of slugs: they are what the user reads, and no
    /// two steps share one.
    pub(crate) fn with_functions<T>(&self, judge: impl FnOnce(FlowDefinition<'_>) -> T) -> T {
        self.with_names(|step| &step.name, judge)
    }

    fn with_names<T>(
        &self,
        name: impl for<'m> Fn(&'m Step<'s>) -> &'m str,
        judge: impl FnOnce(FlowDefinition<'_>) -> T,
    ) -> T {
        let ordered = || self.order.iter().map(|&index| &self.steps[index]);
        let dependencies: Vec<Vec<&str>> = ordered()
            .map(|step| {
                let dependencies = step.edges.iter().filter_map(Edge::step);
                dependencies.map(|index| name(&self.steps[index])).collect()
            })
            .collect();
        let steps: Vec<StepDefinition<'_>> = ordered()
            .zip(&dependencies)
            .map(|(step, depends_on)| definition(step, name(step), depends_on))
            .collect();
        judge(FlowDefinition {
            slug: &self.slug,
            queue_mode: if self.args.with_step_queues {
                QueueMode::Step
            } else {
                QueueMode::Flow
            },
            options: FlowOptions {
                max_attempts: self.args.max_attempts,
                base_delay: self.args.base_delay,
                max_delay: self.args.max_delay,
                give_up_after: self.args.give_up_after,
                timeout: self.args.timeout,
            },
            steps: &steps,
        })
    }
}

fn definition<'m>(
    step: &'m Step<'_>,
    slug: &'m str,
    depends_on: &'m [&'m str],
) -> StepDefinition<'m> {
    StepDefinition {
        slug,
        kind: match step.map {
            Some(MapOver::Input(_) | MapOver::Step(..)) => StepKind::Map,
            // A map without a dependency would be one over the flow's input.
            Some(MapOver::Nothing) | None => StepKind::Single,
        },
        depends_on,
        options: StepOptions {
            max_attempts: step.args.max_attempts,
            base_delay: step.args.base_delay,
            max_delay: step.args.max_delay,
            give_up_after: step.args.give_up_after,
            timeout: step.args.timeout,
            start_delay: step.args.start_delay,
        },
        condition: Condition {
            required: step.required.as_deref(),
            forbidden: step.forbidden.as_deref(),
        },
        when_unmet: step.when_unmet(),
        when_exhausted: step.when_exhausted(),
        on_element_failure: step.on_element_failure(),
        runs_on: step.runs_on(),
        needs_flow_input: step.needs_flow_input(),
    }
}
