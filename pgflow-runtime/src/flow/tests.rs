//! Generated handlers, called as the worker calls them.

use std::time::Duration;

use pgflow_macros::flow;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{Flow, Outputs, StepError, StepId, StepResult, Task};
use crate::context::{Attempt, StepContext};

/// The second of three attempts at the element with index 4.
pub(super) fn context() -> StepContext {
    StepContext::new(Attempt {
        run_id: Uuid::nil(),
        flow_slug: "everything",
        step_slug: "step",
        task_index: 4,
        attempt: 2,
        max_attempts: 3,
        message_id: 1,
        read_count: 1,
        enqueued_at: chrono::Utc::now(),
        deadline: Instant::now() + Duration::from_mins(1),
        cancelled: CancellationToken::new(),
        pool: None,
        flow_input: None,
    })
}

fn raw(json: &str) -> &RawValue {
    serde_json::from_str(json).expect("JSON")
}

#[derive(Debug, Serialize, Deserialize)]
struct Input {
    n: u32,
}

/// Can't be cloned: what a step takes by reference is not copied.
#[derive(Debug, Serialize, Deserialize)]
struct Package {
    name: String,
}

#[derive(Clone)]
struct State(u32);

struct Everything;

#[flow(input = Input, state = State, crate = crate, output_derive = [Debug])]
impl Everything {
    // Declared before what it depends on: its index is the last one.
    #[step(depends_on = [packages, text, maybe, absent])]
    async fn report(
        packages: &[Package],
        text: &str,
        maybe: Option<u32>,
        #[from(absent)] nested: Option<&Option<u32>>,
        ctx: &StepContext,
        input: Input,
    ) -> StepResult<String> {
        let names: Vec<&str> = packages.iter().map(|it| it.name.as_str()).collect();
        Ok(format!(
            "{names:?} {text} {maybe:?} {nested:?} {} {}",
            ctx.attempt(),
            input.n
        ))
    }

    #[step]
    async fn packages(input: &Input, state: &State) -> anyhow::Result<Vec<Package>> {
        anyhow::ensure!(input.n > 0, "nothing to do");
        let name = format!("{}-{}", input.n, state.0);
        Ok(vec![Package { name }])
    }

    #[step]
    async fn text(input: Input) -> StepResult<String> {
        match input.n {
            0 => Err(StepError::permanent("never")),
            1 => Ok("a\0".to_owned()),
            _ => Ok("text".to_owned()),
        }
    }

    #[step]
    async fn maybe() -> StepResult<Option<u32>> {
        Ok(None)
    }

    #[step(if = { n: 3 })]
    async fn absent() -> StepResult<Option<u32>> {
        Ok(None)
    }

    #[step(map = packages)]
    async fn inspect(
        item: &Package,
        state: State,
        ctx: StepContext,
        input: Input,
    ) -> StepResult<(String, u32)> {
        let count = state.0 + input.n + ctx.task_index().unsigned_abs();
        Ok((item.name.clone(), count))
    }
}

async fn run(step: Step, input: &str, flow_input: Option<&str>) -> Result<String, StepError> {
    let definition = &Everything::DEFINITION.steps[step.index()];
    let task = Task::new(definition, raw(input), flow_input.map(raw), context())?;
    let handler = Everything::__HANDLERS[step.index()];
    handler(&task, &State(5))
        .await
        .map(|json| json.get().to_owned())
}

#[tokio::test]
async fn values_reach_the_handler_in_every_form() {
    let out = run(Step::Packages, r#"{"n":7}"#, None)
        .await
        .expect("packages");
    assert_eq!(out, r#"[{"name":"7-5"}]"#);

    let input = r#"{"packages":[{"name":"a"},{"name":"b"}],"text":"t","maybe":null,"absent":null}"#;
    let out = run(Step::Report, input, Some(r#"{"n":7}"#))
        .await
        .expect("a report");
    assert_eq!(out, r#""[\"a\", \"b\"] t None Some(None) 2 7""#);

    let input = r#"{"packages":[],"text":"t","maybe":1}"#;
    let out = run(Step::Report, input, Some(r#"{"n":7}"#))
        .await
        .expect("a report");
    assert_eq!(
        out, r#""[] t Some(1) None 2 7""#,
        "absence is a missing key"
    );

    let out = run(Step::Inspect, r#"{"name":"a"}"#, Some(r#"{"n":7}"#))
        .await
        .expect("an inspection");
    assert_eq!(out, r#"["a",16]"#);
}

#[tokio::test]
async fn failures_say_what_follows() {
    let error = run(Step::Packages, r#"{"n":0}"#, None)
        .await
        .expect_err("a failure");
    assert!(!error.is_permanent());
    assert_eq!(error.message(), "nothing to do");

    let error = run(Step::Text, r#"{"n":0}"#, None)
        .await
        .expect_err("a failure");
    assert!(error.is_permanent());

    let error = run(Step::Text, r#"{"n":1}"#, None)
        .await
        .expect_err("not storable");
    assert!(error.is_permanent());
    assert!(error.message().contains("U+0000"), "{error}");
}

#[tokio::test]
async fn what_does_not_fit_is_not_quoted() {
    let inputs = [
        (Step::Text, r#"{"n":"hunter2"}"#, None),
        (Step::Inspect, r#"{"name":{"hunter2":1}}"#, None),
        (Step::Inspect, r#"{"name":"a"}"#, Some(r#""hunter2""#)),
        (Step::Report, r#"{"packages":[{"name":["hunter2"]}]}"#, None),
        (Step::Report, r#""hunter2""#, None),
    ];
    for (step, input, flow_input) in inputs {
        let error = run(step, input, flow_input)
            .await
            .expect_err("does not fit");
        assert!(!error.is_permanent(), "{error}");
        assert!(!error.message().contains("hunter2"), "{error}");
        assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
    }
}

#[test]
fn the_output_is_read_from_the_leaves() {
    let json = raw(r#"{"report":"r","inspect":[["a",1]],"absent":null}"#);
    let outputs = Outputs::new(json).expect("an object");
    let output = Everything::__output(&outputs).expect("all leaves");
    assert_eq!(output.report, "r");
    assert_eq!(output.inspect, [("a".to_owned(), 1)]);

    let outputs = Outputs::new(raw(r#"{"report":"r"}"#)).expect("an object");
    let error = Everything::__output(&outputs).expect_err("a leaf is missing");
    assert_eq!(error.to_string(), "output of step `inspect`: it is missing");
}

#[test]
fn handlers_stand_by_index_in_the_definition() {
    let slugs: Vec<_> = Step::ALL.iter().map(|step| step.slug()).collect();
    assert_eq!(
        slugs,
        ["packages", "text", "maybe", "absent", "report", "inspect"]
    );
    let defined: Vec<_> = Everything::DEFINITION
        .steps
        .iter()
        .map(|step| step.slug)
        .collect();
    assert_eq!(slugs, defined);
    assert_eq!(Everything::DEFINITION.problems(), []);
}
