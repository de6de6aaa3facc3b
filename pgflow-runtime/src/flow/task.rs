//! The data that the worker hands to a step.

use std::collections::BTreeMap;

use pgflow_definition::{StepDefinition, StepKind};
use serde_json::value::RawValue;

use super::{
    RunEnd, StepError,
    decode::{Misfit, decode, decode_object},
    map_source::{MapInput, MapSource},
    slot::{Required, Skippable},
    stored::{Codec, Stored, codec},
    unreadable::{Origin, Unreadable},
};
use crate::context::StepContext;

/// One claimed task: the JSON that its handler's parameters are read from.
#[derive(Debug)]
pub struct Task<'a> {
    step: &'a StepDefinition<'static>,
    input: &'a RawValue,
    flow_input: Option<&'a RawValue>,
    dependencies: BTreeMap<&'a str, &'a RawValue>,
    ctx: StepContext,
}

impl<'a> Task<'a> {
    /// `input` and `flow_input` are the columns of the claim; the names of the completed
    /// dependencies are read here, once.
    pub fn new(
        step: &'a StepDefinition<'static>,
        input: &'a RawValue,
        flow_input: Option<&'a RawValue>,
        ctx: StepContext,
    ) -> Result<Self, StepError> {
        for json in [Some(input), flow_input].into_iter().flatten() {
            if let Some(reason) = unreadable(json) {
                return Err(StepError::permanent(reason));
            }
        }
        let dependencies = if step.kind == StepKind::Single && !step.depends_on.is_empty() {
            decode_object(input).map_err(|misfit| {
                Unreadable::error(step, ctx.task_index(), Origin::Dependencies, misfit)
            })?
        } else {
            BTreeMap::new()
        };
        Ok(Self {
            step,
            input,
            flow_input,
            dependencies,
            ctx,
        })
    }

    /// The attempt.
    pub fn ctx(&self) -> &StepContext {
        &self.ctx
    }

    /// The flow's input.
    #[doc(hidden)]
    pub fn input<T>(&self, codec: &Codec<T>) -> Result<Required<T>, StepError> {
        read(self, Origin::FlowInput, self.flow_input()?, codec)
    }

    /// The element of a map step.
    #[doc(hidden)]
    pub fn item<T>(&self, codec: &Codec<T>) -> Result<Required<T>, StepError> {
        read(self, Origin::Element, self.input, codec)
    }

    /// The end of the run, for a step that runs after it.
    #[doc(hidden)]
    pub fn end(&self) -> Result<Required<RunEnd>, StepError> {
        match decode(self.input) {
            Ok(end) => Ok(Required(Some(end))),
            Err(misfit) => Err(self.unreadable(Origin::End, misfit)),
        }
    }

    /// The output of a dependency that is always there.
    #[doc(hidden)]
    pub fn required<T>(&self, slug: &str, codec: &Codec<T>) -> Result<Required<T>, StepError> {
        read(
            self,
            Origin::Dependency(slug),
            self.dependency(slug)?,
            codec,
        )
    }

    /// The output of a dependency that may have been skipped.
    #[doc(hidden)]
    pub fn skippable<T>(&self, slug: &str, codec: &Codec<T>) -> Result<Skippable<T>, StepError> {
        let Some(json) = self.dependencies.get(slug) else {
            return Ok(Skippable(None));
        };
        match (codec.decode)(json) {
            Ok(value) => Ok(Skippable(Some(value))),
            Err(misfit) => Err(self.unreadable(Origin::Dependency(slug), misfit)),
        }
    }

    fn flow_input(&self) -> Result<&'a RawValue, StepError> {
        let is_own_input = self.step.kind == StepKind::Single
            && self.step.depends_on.is_empty()
            && self.step.runs_on.is_none();
        // A claim that has it for other tasks of the run, too, leaves it out of this one's own
        // input.
        let json = self.flow_input.or(is_own_input.then_some(self.input));
        json.ok_or_else(|| self.unreadable(Origin::FlowInput, Misfit::absent()))
    }

    fn dependency(&self, slug: &str) -> Result<&'a RawValue, StepError> {
        let json = self.dependencies.get(slug).copied();
        json.ok_or_else(|| self.unreadable(Origin::Dependency(slug), Misfit::absent()))
    }

    #[cold]
    fn unreadable(&self, origin: Origin<'_>, misfit: Misfit) -> StepError {
        Unreadable::error(self.step, self.ctx.task_index(), origin, misfit)
    }
}

/// Returns the reason why the database could not hand the input to a worker: it sends an object
/// with this one key instead.
fn unreadable(json: &RawValue) -> Option<String> {
    const KEY: &str = "[pgflow: unreadable]";
    let start = json.get().strip_prefix("{\"")?;
    if !start.starts_with(KEY) {
        return None;
    }
    let mut object: BTreeMap<String, String> = serde_json::from_str(json.get()).ok()?;
    object.remove(KEY).filter(|_| object.is_empty())
}

// The compiler builds this once for each type: all that does not depend on the type is elsewhere,
// and a closure would be one more function.
fn read<T>(
    task: &Task<'_>,
    origin: Origin<'_>,
    json: &RawValue,
    codec: &Codec<T>,
) -> Result<Required<T>, StepError> {
    match (codec.decode)(json) {
        Ok(value) => Ok(Required(Some(value))),
        Err(misfit) => Err(task.unreadable(origin, misfit)),
    }
}

/// The element of a map step over a list whose element type only the type checker knows.
#[doc(hidden)]
pub fn item_of<L>(task: &Task<'_>) -> Result<Required<L::Item>, StepError>
where
    L: MapSource,
    L::Item: Stored,
{
    task.item(&codec())
}

/// The same for the flow's input.
#[doc(hidden)]
pub fn item_of_input<L>(task: &Task<'_>) -> Result<Required<L::Item>, StepError>
where
    L: MapInput,
    L::Item: Stored,
{
    task.item(&codec())
}

#[cfg(test)]
mod tests {
    use pgflow_definition::{Condition, ElementFailure, SkipMode, StepOptions};

    use super::*;
    use crate::flow::{slot::FromSlot, tests::context};

    fn step(kind: StepKind, depends_on: &'static [&'static str]) -> StepDefinition<'static> {
        StepDefinition {
            slug: "report",
            kind,
            depends_on,
            options: StepOptions::default(),
            condition: Condition::default(),
            when_unmet: SkipMode::Skip,
            when_exhausted: SkipMode::Fail,
            on_element_failure: ElementFailure::Fail,
            runs_on: None,
            needs_flow_input: true,
        }
    }

    fn raw(json: &str) -> &RawValue {
        serde_json::from_str(json).expect("JSON")
    }

    fn take<T>(mut slot: Required<T>) -> T {
        T::from_slot(&mut slot)
    }

    #[tokio::test]
    async fn dependencies_are_read_by_slug() {
        let step = step(StepKind::Single, &["parse", "licences", "inspect"]);
        let input = raw(r#"{"parse":[1,2],"licences":null}"#);
        let task = Task::new(&step, input, Some(raw("7")), context()).expect("an object");

        assert_eq!(
            take(task.required("parse", &codec::<Vec<u8>>()).expect("fits")),
            [1, 2]
        );
        assert_eq!(take(task.input(&codec::<u8>()).expect("fits")), 7);
        let absent = task.skippable("inspect", &codec::<u8>()).expect("absent");
        assert_eq!(absent.0, None);
        let null = task
            .skippable("licences", &codec::<Option<u8>>())
            .expect("fits");
        assert_eq!(null.0, Some(None), "null is an output, not an absence");
    }

    #[tokio::test]
    async fn the_input_of_a_single_root_step_is_the_flow_input() {
        let step = step(StepKind::Single, &[]);
        let task = Task::new(&step, raw("[1]"), None, context()).expect("no dependencies");
        assert_eq!(take(task.input(&codec::<Vec<u8>>()).expect("fits")), [1]);
    }

    #[tokio::test]
    async fn an_end_step_has_the_end_of_its_run_and_the_flow_input_apart() {
        let step = StepDefinition {
            runs_on: Some(pgflow_definition::RunsOn::End),
            ..step(StepKind::Single, &[])
        };
        let end = raw(r#"{"status": "completed", "outputs": {"parse": 1}}"#);
        let task = Task::new(&step, end, Some(raw("7")), context()).expect("fits");
        assert_eq!(take(task.end().expect("fits")).outputs.len(), 1);
        assert_eq!(take(task.input(&codec::<u8>()).expect("fits")), 7);
        let task = Task::new(&step, end, None, context()).expect("fits");
        let error = task.input(&codec::<u8>()).expect_err("absent");
        let what = "can't read a stored value: the flow's input: it is missing";
        assert!(error.message().contains(what), "{}", error.message());

        let task = Task::new(&step, raw(r#"{"status": "hunter2"}"#), None, context());
        let error = task.expect("fits").end().expect_err("no such status");
        assert!(
            error
                .message()
                .contains("the end of the run (`end`): at `status`:")
        );
        assert!(!error.message().contains("hunter2"));
    }

    #[tokio::test]
    async fn a_map_step_has_an_element_and_the_flow_input_apart() {
        for depends_on in [&[][..], &["parse"]] {
            let step = step(StepKind::Map, depends_on);
            let task = Task::new(&step, raw("1"), Some(raw("[1,2]")), context()).expect("fits");
            assert_eq!(take(task.item(&codec::<u8>()).expect("fits")), 1);
            assert_eq!(take(task.input(&codec::<Vec<u8>>()).expect("fits")), [1, 2]);
        }
    }

    #[tokio::test]
    async fn an_input_that_the_database_can_not_hand_out_fails_with_its_reason() {
        let reason = r#"{"[pgflow: unreadable]": "the outputs are \"too large\""}"#;
        let (kinds, fine) = ([StepKind::Single, StepKind::Map], raw("{}"));
        for (kind, input, flow_input) in kinds
            .into_iter()
            .flat_map(|kind| [(kind, raw(reason), fine), (kind, fine, raw(reason))])
        {
            let step = step(kind, &["parse"]);
            let error = Task::new(&step, input, Some(flow_input), context()).expect_err("fails");
            assert!(error.is_permanent());
            assert_eq!(error.message(), "the outputs are \"too large\"");
        }
        let other = raw(r#"{"[pgflow: unreadable]": "x", "parse": 1}"#);
        let step = step(StepKind::Single, &["parse"]);
        assert!(Task::new(&step, other, None, context()).is_ok());
    }

    #[tokio::test]
    async fn what_does_not_fit_fails_for_now_and_is_not_quoted() {
        let step = step(StepKind::Single, &["parse"]);
        let task = Task::new(&step, raw(r#"{"parse":{"a":"hunter2"}}"#), None, context())
            .expect("an object");

        let fails = |error: StepError, expected: &str| {
            assert!(!error.is_permanent());
            let message = error.message();
            let message =
                message.strip_prefix("step `report`: this build can't read a stored value: ");
            let message = message.and_then(|message| message.split_once("; roll back"));
            assert_eq!(message.map(|(problem, _)| problem), Some(expected));
        };
        fails(
            task.required("parse", &codec::<BTreeMap<String, u8>>())
                .expect_err("not a number"),
            "the output of dependency `parse`: at `a`: invalid type (a string), expected u8 (line 1, column 14)",
        );
        fails(
            task.required("other", &codec::<u8>()).expect_err("absent"),
            "the output of dependency `other`: it is missing",
        );
        fails(
            task.input(&codec::<u8>()).expect_err("absent"),
            "the flow's input: it is missing",
        );
        fails(
            Task::new(&step, raw("\"hunter2\""), None, context()).expect_err("not an object"),
            "the outputs of the dependencies: invalid type (a string), expected a map (line 1, column 9)",
        );
    }
}
