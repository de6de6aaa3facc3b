//! The definition as the JSON that startup sends to Postgres.

use serde_json::{Map, Value, json};

use crate::options::OptionName::{self, BaseDelay, MaxAttempts, StartDelay, Timeout};
use crate::problem::{Part, Problem, ProblemKind};
use crate::{FlowDefinition, StepDefinition, condition};

impl FlowDefinition<'_> {
    /// The shape of the flow, and the options that it is created with.
    ///
    /// Equal definitions give equal JSON: dependencies are sorted, and options that are not set are left out, the `options` object
    /// itself included when none is.
    ///
    /// Only a valid definition has a shape: otherwise all its [`problems`](Self::problems) are returned.
    pub fn shape(&self) -> Result<Value, Vec<Problem>> {
        let problems = self.problems();
        if !problems.is_empty() {
            return Err(problems);
        }
        let steps = (0..self.steps.len())
            .map(|index| self.step_shape(index))
            .collect::<Result<Vec<_>, _>>();
        let mut shape = Map::new();
        shape.insert(
            "steps".into(),
            steps.map_err(|problem| vec![problem])?.into(),
        );
        let flow = self.options;
        insert_options(
            &mut shape,
            &[
                (MaxAttempts, flow.max_attempts),
                (BaseDelay, flow.base_delay),
                (Timeout, flow.timeout),
            ],
        );
        Ok(shape.into())
    }

    fn step_shape(&self, index: usize) -> Result<Value, Problem> {
        let StepDefinition {
            slug,
            kind,
            depends_on,
            options,
            condition,
            when_unmet,
            when_exhausted,
            ..
        } = self.steps[index];
        let pattern =
            |part, text| pattern(text).map_err(|kind| self.problem_on_step(index, part, kind));
        let mut dependencies = depends_on.to_vec();
        dependencies.sort_unstable();

        let mut shape = Map::new();
        shape.insert("slug".into(), slug.into());
        shape.insert("stepType".into(), kind.as_str().into());
        shape.insert("dependencies".into(), dependencies.into());
        shape.insert("whenUnmet".into(), when_unmet.as_str().into());
        shape.insert("whenExhausted".into(), when_exhausted.as_str().into());
        shape.insert(
            "requiredInputPattern".into(),
            pattern(Part::Required, condition.required)?,
        );
        shape.insert(
            "forbiddenInputPattern".into(),
            pattern(Part::Forbidden, condition.forbidden)?,
        );
        insert_options(
            &mut shape,
            &[
                (MaxAttempts, options.max_attempts),
                (BaseDelay, options.base_delay),
                (Timeout, options.timeout),
                (StartDelay, options.start_delay),
            ],
        );
        Ok(shape.into())
    }
}

/// Wrapped, so that the absence of a pattern differs from the pattern `null`.
fn pattern(text: Option<&str>) -> Result<Value, ProblemKind> {
    text.map_or_else(
        || Ok(json!({ "defined": false })),
        |text| Ok(json!({ "defined": true, "value": condition::read(text)? })),
    )
}

fn insert_options(shape: &mut Map<String, Value>, options: &[(OptionName, Option<u32>)]) {
    let options: Map<_, _> = options
        .iter()
        .filter_map(|&(name, value)| Some((key(name).into(), value?.into())))
        .collect();
    if !options.is_empty() {
        shape.insert("options".into(), options.into());
    }
}

fn key(option: OptionName) -> &'static str {
    match option {
        MaxAttempts => "maxAttempts",
        BaseDelay => "baseDelay",
        Timeout => "timeout",
        StartDelay => "startDelay",
    }
}
