//! `complete_task`: one attempt. Batches, and what both share, are in `complete_tasks`.

use serde_json::{Value, json};
use sqlx::Row;
use sqlx::postgres::{PgExecutor, PgRow};
use uuid::Uuid;

use crate::support::TestDb;
use crate::support::flows::{claim_one, complete, fail, start, step};
use crate::support::invariants::assert_invariants;
use crate::support::rows::{archived, messages, raised, run, step_state};
use crate::support::runs::{claim_all, database_with, everything, fail_for_good, of_step, outline};

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
