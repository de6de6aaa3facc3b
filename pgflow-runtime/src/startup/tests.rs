use chrono::DateTime;
use pgflow_definition::{FlowDefinition, StepDefinition};
use serde_json::{from_value, json};
use sqlx::postgres::PgPoolOptions;

use super::*;
use crate::worker::testing::{self, options};

const STEP: StepDefinition<'static> = StepDefinition {
    slug: "parse",
    ..testing::STEP
};

const AUDIT: FlowDefinition<'static> = FlowDefinition {
    slug: "audit",
    steps: &[STEP],
    ..testing::DEFINITION
};

const INVALID: FlowDefinition<'static> = FlowDefinition {
    slug: "a__b",
    steps: &[STEP, STEP],
    ..testing::DEFINITION
};

/// A pool that can't connect: whoever asks it has gone too far.
fn nowhere() -> PgPool {
    PgPoolOptions::new()
        .acquire_timeout(std::time::Duration::from_secs(1))
        .connect_lazy("postgres://user:hunter2@127.0.0.1:1/none")
        .expect("a valid URL")
}

async fn error(
    definition: &'static FlowDefinition<'static>,
    options: &WorkerOptions,
) -> StartupError {
    let target = Target {
        definition,
        step: None,
    };
    start(&nowhere(), target, options, None, &Stop::default())
        .await
        .expect_err("does not start")
}

#[tokio::test]
async fn an_invalid_definition_is_refused_before_the_database_is_asked() {
    let error = error(&INVALID, &options("f")).await;
    let StartupError::InvalidDefinition { flow, problems } = &error else {
        panic!("{error}");
    };
    assert_eq!(flow, "a__b");
    assert_eq!(problems.len(), 2, "{error}");
    assert_eq!(error.to_string().lines().count(), 3, "{error}");
}

#[tokio::test]
async fn invalid_options_are_refused_before_the_database_is_asked() {
    let mut wrong = options("");
    wrong.concurrency = 0;
    wrong.migrate = true;
    let error = error(&AUDIT, &wrong).await;
    let StartupError::InvalidOptions { problems } = &error else {
        panic!("{error}");
    };
    assert_eq!(problems.len(), 2);
}

#[tokio::test]
async fn an_unreachable_database_is_named_as_such_without_its_password() {
    let error = error(&AUDIT, &options("f")).await;
    assert!(matches!(error, StartupError::Connect(_)), "{error}");
    let text = format!("{error} {error:?}");
    assert!(!text.contains("hunter2"), "{text}");
}

#[test]
fn a_mismatch_lists_the_differences_and_the_way_out() {
    for (kind, expected) in [("shape", "another definition"), ("routing", "other queues")] {
        let compilation = from_value(json!({
            "status": "mismatch",
            "mismatch_kind": kind,
            "differences": ["step \"parse\" is missing", "step \"report\" is new"],
            "options_differ": [],
        }))
        .expect("a compilation");
        let Err(error) = accept("audit", compilation) else {
            panic!("accepted");
        };
        let error = error.to_string();
        assert!(error.contains(expected), "{error}");
        assert!(
            error.contains("\n  step \"parse\" is missing\n  step \"report\" is new\n"),
            "{error}"
        );
        assert!(error.contains("audit_v2"), "{error}");
    }
}

#[test]
fn options_that_differ_are_no_reason_to_stop() {
    let compilation = from_value(json!({
        "status": "verified",
        "mismatch_kind": null,
        "differences": [],
        "options_differ": ["timeout: 60 in the database, 30 in the code"],
    }))
    .expect("a compilation");
    assert!(matches!(
        accept("audit", compilation),
        Ok(Answer::Accepted(CompileStatus::Verified))
    ));
}

#[test]
fn a_disabled_function_says_since_when_why_and_what_to_do() {
    let disabled = FunctionDisabled {
        function_name: "audit".to_owned(),
        since: DateTime::from_timestamp(0, 0),
        reason: Some("unsupported work".to_owned()),
        is_fenced: false,
    };
    assert_eq!(
        disabled.to_string(),
        "worker function `audit` is disabled since 1970-01-01 00:00:00 UTC (unsupported work); \
         deal with the reason, then run `pgflow workers enable audit` or `select pgflow.enable_worker_function('audit')`"
    );
}

#[test]
fn a_function_that_a_stray_message_disabled_names_the_command_that_clears_it() {
    let disabled = FunctionDisabled {
        function_name: "audit".to_owned(),
        since: None,
        reason: Some(
            "unsupported work in queue \"audit\": message 7: no task has this message".to_owned(),
        ),
        is_fenced: false,
    };
    let text = disabled.to_string();
    assert!(text.contains("`pgflow queues --inspect`"), "{text}");
    let clears = "`pgflow workers enable audit --archive-unsupported`";
    assert!(text.ends_with(clears), "{text}");
}

#[test]
fn a_fenced_function_says_what_ends_the_fence() {
    let fenced = FunctionDisabled {
        function_name: "audit".to_owned(),
        since: DateTime::from_timestamp(0, 0),
        reason: Some("fenced: build 12".to_owned()),
        is_fenced: true,
    };
    assert_eq!(
        fenced.to_string(),
        "worker function `audit` is fenced since 1970-01-01 00:00:00 UTC (fenced: build 12); \
         a deployment replaces its code: its last step, `pgflow workers unfence audit` with all that were fenced with it, or \
         `select pgflow.unfence_worker_functions(array['audit'])`, lets it start again"
    );
}

#[test]
fn a_step_worker_takes_its_own_queue_and_its_own_step_s_input_alone() {
    const QUEUED: FlowDefinition<'static> = FlowDefinition {
        slug: "Audit",
        queue_mode: pgflow_definition::QueueMode::Step,
        steps: &[
            StepDefinition {
                slug: "Fetch",
                runs_on: None,
                needs_flow_input: true,
                ..STEP
            },
            StepDefinition {
                slug: "a_step_whose_name_is_so_long_that_it_does_not_fit",
                depends_on: &["Fetch"],
                runs_on: None,
                needs_flow_input: true,
                ..STEP
            },
        ],
        ..testing::DEFINITION
    };
    for (step, queue, slug) in [
        (0, "audit__fetch", "Fetch"),
        (
            1,
            "audit__1",
            "a_step_whose_name_is_so_long_that_it_does_not_fit",
        ),
    ] {
        let target = Target {
            definition: &QUEUED,
            step: Some(step),
        };
        let plan = Plan::new(target).expect("a valid definition");
        assert_eq!(plan.queue_name, queue);
        assert_eq!(target.queue_name(), queue);
        assert_eq!(target.step_slug(), Some(slug));
        assert_eq!(plan.flow_input_steps, [slug]);
    }
}
