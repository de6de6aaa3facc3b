//! The definition as the JSON that startup sends to Postgres.

use serde_json::{Map, Value, json};

use crate::options::OptionName;
use crate::problem::{ConditionProblem, Part, Problem, ProblemKind};
use crate::{ElementFailure, FlowDefinition, StepDefinition, condition};

impl FlowDefinition<'_> {
    /// The shape of the flow, and the options that it is created with.
    ///
    /// Equal definitions give equal JSON: dependencies are sorted by byte, and options that are not
    /// set are left out, the `options` object itself included when none is.
    ///
    /// Only a valid definition has a shape: otherwise all its [`problems`](Self::problems) are
    /// returned.
    pub fn shape(&self) -> Result<Value, Vec<Problem>> {
        let problems = self.problems();
        if !problems.is_empty() {
            return Err(problems);
        }
        let steps = (0..self.steps.len()).map(|index| self.step_shape(index));
        let steps = steps.collect::<Result<Vec<_>, _>>()?;
        let mut shape = Map::new();
        shape.insert("steps".into(), steps.into());
        insert_options(&mut shape, self.options.set());
        Ok(shape.into())
    }

    fn step_shape(&self, index: usize) -> Result<Value, Vec<Problem>> {
        let step: &StepDefinition<'_> = &self.steps[index];
        let mut dependencies = step.depends_on.to_vec();
        dependencies.sort_unstable();
        let pattern = |part, text| {
            pattern(text).map_err(|problem| {
                vec![self.problem_on_step(index, part, ProblemKind::Condition(problem))]
            })
        };

        let mut shape = Map::new();
        let mut insert = |key: &str, value: Value| shape.insert(key.into(), value);
        insert("slug", step.slug.into());
        insert("stepType", step.kind.as_str().into());
        insert("dependencies", dependencies.into());
        insert("whenUnmet", step.when_unmet.as_str().into());
        insert("whenExhausted", step.when_exhausted.as_str().into());
        // Left out by default, as it was before there was a choice.
        if step.on_element_failure != ElementFailure::Fail {
            insert("onElementFailure", step.on_element_failure.as_str().into());
        }
        insert(
            "requiredInputPattern",
            pattern(Part::Required, step.condition.required)?,
        );
        insert(
            "forbiddenInputPattern",
            pattern(Part::Forbidden, step.condition.forbidden)?,
        );
        if let Some(end) = step.runs_on {
            shape.insert("runsOn".into(), end.as_str().into());
        }
        insert_options(&mut shape, step.options.set());
        Ok(shape.into())
    }
}

/// Wrapped, so that Postgres can distinguish a missing pattern from a shape that lacks the key.
fn pattern(text: Option<&str>) -> Result<Value, ConditionProblem> {
    Ok(match text {
        None => json!({ "defined": false }),
        Some(text) => json!({ "defined": true, "value": condition::read(text)? }),
    })
}

fn insert_options(
    shape: &mut Map<String, Value>,
    options: impl Iterator<Item = (OptionName, u32)>,
) {
    let options: Map<_, _> = options
        .map(|(name, value)| (key(name).to_owned(), value.into()))
        .collect();
    if !options.is_empty() {
        shape.insert("options".into(), options.into());
    }
}

fn key(option: OptionName) -> &'static str {
    match option {
        OptionName::MaxAttempts => "maxAttempts",
        OptionName::BaseDelay => "baseDelay",
        OptionName::MaxDelay => "maxDelay",
        OptionName::GiveUpAfter => "giveUpAfter",
        OptionName::Timeout => "timeout",
        OptionName::StartDelay => "startDelay",
    }
}
