use chrono::DateTime;
use pgflow_definition::StepDefinition;
use serde_json::from_value;
use sqlx::postgres::PgPoolOptions;

use super::*;
use crate::worker::testing;

const STEP: StepDefinition<'static> = StepDefinition {
    slug: "parse",
    ..testing::STEP
};

fn definition(
    slug: &'static str,
    steps: &'static [StepDefinition<'static>],
) -> FlowDefinition<'static> {
    FlowDefinition {
        slug,
        steps,
        ..testing::DEFINITION
    }
}

/// A pool that can't connect: whoever asks it has gone too far.
fn nowhere() -> PgPool {
    PgPoolOptions::new()
        .acquire_timeout(std::time::Duration::from_secs(1))
        .connect_lazy("postgres://user:hunter2@127.0.0.1:1/none")
        .expect("a valid URL")
}

async fn error(definition: &FlowDefinition<'static>, options: &WorkerOptions) -> StartupError {
    start(&nowhere(), definition, options)
        .await
        .expect_err("does not start")
}

#[tokio::test]
async fn an_invalid_definition_is_refused_before_the_database_is_asked() {
    let definition = definition("a__b", &[STEP, STEP]);
    let error = error(&definition, &WorkerOptions::new("f")).await;
    let StartupError::InvalidDefinition { flow, problems } = &error else {
        panic!("{error}");
    };
    assert_eq!(flow, "a__b");
    assert_eq!(problems.len(), 2, "{error}");
    assert_eq!(error.to_string().lines().count(), 3, "{error}");
}

#[tokio::test]
async fn invalid_options_are_refused_before_the_database_is_asked() {
    let mut options = WorkerOptions::new("");
    options.concurrency = 0;
    options.migrate = true;
    let error = error(&definition("audit", &[STEP]), &options).await;
    let StartupError::InvalidOptions { problems } = &error else {
        panic!("{error}");
    };
    assert_eq!(problems.len(), 2);
}

#[tokio::test]
async fn an_unreachable_database_is_named_as_such_without_its_password() {
    let error = error(&definition("audit", &[STEP]), &WorkerOptions::new("f")).await;
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
        let error = accept("audit", compilation)
            .expect_err("refused")
            .to_string();
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
    assert_eq!(
        accept("audit", compilation).expect("accepted"),
        CompileStatus::Verified
    );
}

#[test]
fn a_disabled_function_says_since_when_why_and_what_to_do() {
    let disabled = FunctionDisabled {
        function_name: "audit".to_owned(),
        since: DateTime::from_timestamp(0, 0),
        reason: Some("unsupported work".to_owned()),
    };
    assert_eq!(
        disabled.to_string(),
        "worker function `audit` is disabled since 1970-01-01 00:00:00 UTC (unsupported work); \
         deal with the reason, then run `select pgflow.enable_worker_function('audit')`"
    );
}
