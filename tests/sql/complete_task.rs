//! `complete_task`: one attempt. Batches, and what both share, are in `complete_tasks`.

use serde_json::{Value, json};
use sqlx::Row;
use sqlx::postgres::{PgExecutor, PgRow};
use uuid::Uuid;

use crate::support::TestDb;
use crate::support::flows::{Step, claim_one, complete, fail, start, step};
use crate::support::invariants::assert_invariants;
use crate::support::rows::{archived, messages, raised, run, step_state};
use crate::support::runs::{
    age, claim_all, database_with, everything, fail_for_good, of_step, outline, requeue, stamps,
    task_statuses,
};

async fn call(
    db: impl PgExecutor<'_>,
    run_id: Uuid,
    step: &str,
    index: i32,
) -> sqlx::Result<Vec<PgRow>> {
    sqlx::query("select * from pgflow.complete_task($1, $2, $3, '\"late\"')")
        .bind(run_id)
        .bind(step)
        .bind(index)
        .fetch_all(db)
        .await
}

#[tokio::test]
async fn the_completed_row_is_returned_its_message_archived_and_its_dependent_started() {
    let (db, worker) = database_with(&[step("a"), step("b").deps(&["a"])]).await;
    let run_id = start(&db.pool, "f", json!({"n": 1})).await;
    let a = claim_one(&db.pool, worker).await;
    let rows = call(&db.pool, run_id, "a", 0)
        .await
        .expect("it is completed");
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].get::<String, _>("status"), "completed");
    assert_eq!(rows[0].get::<Value, _>("output"), json!("late"));
    assert_eq!(rows[0].get::<i32, _>("attempts_count"), 1);

    assert_eq!(archived(&db.pool, "f").await, [a.message_id]);
    let live = messages(&db.pool, "f").await;
    assert_eq!(live.len(), 1);
    assert_eq!(
        live[0].body,
        json!({"flow_slug": "f", "run_id": run_id, "step_slug": "b", "task_index": 0})
    );
    assert_eq!(
        outline(&db.pool, run_id).await,
        "run started, a completed, b started"
    );
    assert_eq!(run(&db.pool, run_id).await.remaining_steps, 1);
    assert_eq!(step_state(&db.pool, run_id, "b").await.remaining_deps, 0);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_late_completion_returns_the_row_and_changes_nothing() {
    let (db, worker) = database_with(&[
        step("completed"),
        step("queued"),
        step("skipped").when_exhausted("skip"),
        step("failed"),
        step("cancelled"),
    ])
    .await;
    let run_id = start(&db.pool, "f", json!({})).await;
    let claimed = claim_all(&db.pool, worker).await;
    complete(
        &db.pool,
        of_step(&claimed, "completed"),
        json!("in good time"),
    )
    .await;
    fail_for_good(&db.pool, of_step(&claimed, "skipped"), "no").await;
    fail(&db.pool, of_step(&claimed, "queued"), "again").await;
    let before = everything(&db.pool, "f").await;
    for (step, status) in [
        ("completed", "completed"),
        ("skipped", "failed"),
        ("queued", "queued"),
    ] {
        let rows = call(&db.pool, run_id, step, 0).await.expect("it is late");
        assert_eq!(rows.len(), 1);
        assert_eq!(rows[0].get::<String, _>("status"), status);
    }
    assert_eq!(everything(&db.pool, "f").await, before);

    fail_for_good(&db.pool, of_step(&claimed, "failed"), "no").await;
    let before = everything(&db.pool, "f").await;
    for (step, status) in [
        ("cancelled", "cancelled"),
        ("queued", "cancelled"),
        ("failed", "failed"),
    ] {
        let rows = call(&db.pool, run_id, step, 0).await.expect("it is late");
        assert_eq!(rows[0].get::<String, _>("status"), status);
    }
    assert_eq!(everything(&db.pool, "f").await, before);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_type_violation_returns_the_failed_row() {
    let (db, worker) = database_with(&[step("a"), step("m").map().deps(&["a"])]).await;
    let run_id = start(&db.pool, "f", json!({})).await;
    claim_one(&db.pool, worker).await;
    let rows = call(&db.pool, run_id, "a", 0).await.expect("no exception");
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].get::<String, _>("status"), "failed");
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn an_unknown_task_is_an_error() {
    let db = TestDb::new().await;
    let nobody = Uuid::from_u128(7);
    assert_eq!(
        raised(call(&db.pool, nobody, "a", 0).await),
        format!("PF003: there is no task \"a\" [0] in run {nobody}")
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_completion_stamps_its_task_and_step_and_the_last_one_the_run() {
    let (db, worker) = database_with(&[step("a"), step("b").deps(&["a"])]).await;
    let run_id = start(&db.pool, "f", json!({})).await;
    complete(&db.pool, &claim_one(&db.pool, worker).await, json!(1)).await;
    assert_eq!(
        stamps(&db.pool, run_id).await,
        [
            "run: started",
            "a: completed, created, started",
            "b: created, started",
            "a[0]: completed, queued, started",
            "b[0]: queued",
        ]
    );
    complete(&db.pool, &claim_one(&db.pool, worker).await, json!(1)).await;
    assert_eq!(
        stamps(&db.pool, run_id).await,
        [
            "run: completed, started",
            "a: completed, created, started",
            "b: completed, created, started",
            "a[0]: completed, queued, started",
            "b[0]: completed, queued, started",
        ]
    );
    assert_invariants(&db.pool).await;
}

/// The worker that stalled comes back with an output of the wrong type: it has no say any more.
#[tokio::test]
async fn a_type_violation_of_a_requeued_task_changes_nothing() {
    let (db, worker) = database_with(&[step("a"), step("m").map().deps(&["a"])]).await;
    let run_id = start(&db.pool, "f", json!({})).await;
    let stalled = claim_one(&db.pool, worker).await;
    age(&db.pool, run_id, "a", 3600).await;
    assert_eq!(requeue(&db.pool).await, 1);

    let before = everything(&db.pool, "f").await;
    assert_eq!(complete(&db.pool, &stalled, json!({})).await, "queued");
    // `call` names no attempt.
    let rows = call(&db.pool, run_id, "a", 0).await.expect("it is late");
    assert_eq!(rows[0].get::<String, _>("status"), "queued");
    assert_eq!(everything(&db.pool, "f").await, before);

    let again = claim_one(&db.pool, worker).await;
    assert_eq!(complete(&db.pool, &again, json!(["x"])).await, "completed");
    assert_eq!(
        outline(&db.pool, run_id).await,
        "run started, a completed, m started"
    );
    assert_invariants(&db.pool).await;
}

/// An exception would make the worker take a success for a failure, and run the handler once more.
#[tokio::test]
async fn whatever_follows_from_a_completion_it_stays_a_completion() {
    let slugs: Vec<String> = (0..60).map(|n| format!("s{n}")).collect();
    let chain = |next: fn(Step, &str) -> Step| -> Vec<Step> {
        let mut steps = vec![step("source")];
        let mut before = "source";
        for slug in &slugs {
            steps.push(next(step(slug).deps(&[before]), before));
            before = slug;
        }
        steps
    };
    let empty_maps = chain(|step, _| step.map());
    let unmet = chain(|step, before| step.required(json!({before: "met"})));
    let mut fails = chain(|step, _| step.map());
    fails.push(
        step("strict")
            .deps(&["s59"])
            .required(json!({"s59": [1]}))
            .when_unmet("fail"),
    );
    for (steps, run_status) in [
        (empty_maps, "completed"),
        (unmet, "completed"),
        (fails, "failed"),
    ] {
        let (db, worker) = database_with(&steps).await;
        let run_id = start(&db.pool, "f", json!({})).await;
        let source = claim_one(&db.pool, worker).await;
        assert_eq!(complete(&db.pool, &source, json!([])).await, "completed");
        assert_eq!(run(&db.pool, run_id).await.status, run_status);
        assert_eq!(task_statuses(&db.pool, run_id, "source").await, "completed");
        assert_invariants(&db.pool).await;
    }
}
