//! The reason why a step is not running, as a value.

use pgflow::RefusalCode;
use pgflow::inspect::{StepReason, explain_step, explain_step_as_json};
use serde_json::json;
use uuid::Uuid;

use crate::support::flows::{claim_one, complete, drain, fail, start, step};
use crate::support::invariants::assert_invariants;
use crate::support::runs::{claim_all, database_with, fail_for_good, of_step};

#[tokio::test]
async fn a_step_is_explained_from_its_wait_to_its_end() {
    let (db, worker) = database_with(&[
        step("list"),
        step("each").map().deps(&["list"]).base_delay(60),
    ])
    .await;
    let run = start(&db.pool, "f", json!({})).await;
    let explain = async || {
        explain_step(&db.pool, run, "each")
            .await
            .expect("explained")
    };

    let waits = explain().await;
    assert_eq!(waits.reason, StepReason::WaitingForDependencies);
    assert_eq!(waits.message, "It waits for list (started).");
    assert_eq!((waits.run_id, waits.flow_slug.as_str()), (run, "f"));
    assert_eq!(waits.waiting_for.len(), 1);
    assert_eq!(waits.waiting_for[0].step_slug, "list");
    assert_eq!(waits.waiting_for[0].status, "started");

    let list = claim_one(&db.pool, worker).await;
    complete(&db.pool, &list, json!([1, 2])).await;
    let first = claim_one(&db.pool, worker).await;
    let runs = explain().await;
    assert_eq!(runs.reason, StepReason::Running);
    assert_eq!((runs.tasks.queued, runs.tasks.started), (1, 1));
    assert_eq!((runs.tasks.completed, runs.visible_at), (0, None));
    assert_eq!(runs.running.len(), 1);
    let attempt = &runs.running[0];
    assert_eq!((attempt.task_index, attempt.attempt), (0, 1));
    assert_eq!(attempt.worker_id, Some(worker));
    assert_eq!(attempt.started_at, first.started_at);
    assert_eq!(
        (attempt.overdue_at - attempt.started_at).num_seconds(),
        i64::from(first.timeout) + 30
    );

    let second = claim_one(&db.pool, worker).await;
    complete(&db.pool, &first, json!(1)).await;
    fail(&db.pool, &second, "not yet").await;
    let delayed = explain().await;
    assert_eq!(delayed.reason, StepReason::RetryDelay);
    assert!(delayed.visible_at.is_some_and(|at| at > first.started_at));

    sqlx::query("update pgmq.q_f set vt = now()")
        .execute(&db.pool)
        .await
        .expect("messages can be shown by hand");
    drain(&db.pool, worker, |_| json!(2)).await;
    let done = explain().await;
    assert_eq!(done.reason, StepReason::Completed);
    assert_eq!(
        (done.status.as_str(), done.tasks.completed),
        ("completed", 2)
    );
    assert_invariants(&db.pool).await;
}

/// An error that rules out further attempts does not use them up.
#[tokio::test]
async fn a_permanent_error_is_told_from_the_last_of_the_attempts() {
    let (db, worker) = database_with(&[
        step("page").when_exhausted("skip"),
        step("print").max_attempts(1),
        step("bind"),
    ])
    .await;
    let run = start(&db.pool, "f", json!({})).await;
    let tasks = claim_all(&db.pool, worker).await;
    fail_for_good(&db.pool, of_step(&tasks, "page"), "no such page").await;
    fail(&db.pool, of_step(&tasks, "print"), "no ink").await;
    let explain = async |step: &str| {
        let explained = explain_step(&db.pool, run, step).await;
        explained.expect("explained")
    };

    let page = explain("page").await;
    assert_eq!(page.reason, StepReason::Skipped);
    assert_eq!(page.error_message.as_deref(), Some("no such page"));
    assert!(
        page.message
            .ends_with(": its task failed for good at attempt 1 of 3."),
        "{}",
        page.message
    );
    let print = explain("print").await;
    assert_eq!(print.reason, StepReason::Failed);
    assert!(
        print
            .message
            .ends_with(", and its run with it: its task failed at its only attempt."),
        "{}",
        print.message
    );
    let bind = explain("bind").await;
    assert_eq!(bind.reason, StepReason::RunEnded);
    assert_eq!(
        bind.message,
        "Step \"print\" failed the run before this step had ended."
    );
    assert_eq!((bind.status.as_str(), bind.tasks.cancelled), ("started", 1));
    assert_invariants(&db.pool).await;
}

/// Reasons that a function of the same level gives are all known to this release.
#[test]
fn every_reason_of_the_function_is_known() {
    let function = include_str!("../../migrations/functions/explain_step.sql");
    let mut found = 0;
    for text in function.split("v_reason := ").skip(1) {
        let (expression, _) = text.split_once(';').expect("a statement");
        let names = expression.split('\'').skip(1).step_by(2);
        for name in names {
            let reason: StepReason = serde_json::from_value(json!(name)).expect("a reason");
            assert_ne!(reason, StepReason::Other, "{name}");
            assert_eq!(json!(reason), json!(name));
            found += 1;
        }
    }
    assert!(found >= 13, "only {found} reasons were found in the text");
    let newer: StepReason = serde_json::from_value(json!("bewitched")).expect("a reason");
    assert_eq!(newer, StepReason::Other);
}

#[tokio::test]
async fn as_json_it_is_what_the_function_answers() {
    let (db, _) = database_with(&[step("a")]).await;
    let run = start(&db.pool, "f", json!({})).await;
    let mut session = db.pool.begin().await.expect("a session");
    let answer: serde_json::Value = sqlx::query_scalar("select pgflow.explain_step($1, 'a')")
        .bind(run)
        .fetch_one(&mut *session)
        .await
        .expect("explained");
    let passed_on = explain_step_as_json(&mut *session, run, "a").await;
    assert_eq!(passed_on.expect("explained"), answer);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn an_unknown_run_and_an_unknown_step_are_refused() {
    let (db, _) = database_with(&[step("a")]).await;
    let run = start(&db.pool, "f", json!({})).await;
    for (id, slug, code) in [
        (Uuid::now_v7(), "a", RefusalCode::UnknownRun),
        (run, "b", RefusalCode::UnknownTask),
    ] {
        let error = explain_step(&db.pool, id, slug).await.expect_err("refused");
        assert_eq!(error.refusal(), Some(code));
    }
    assert_invariants(&db.pool).await;
}
