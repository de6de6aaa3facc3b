//! Another shape in a developer's own database: once nobody works on the old flow, it gives way with all of its runs.

use serde_json::{Value, json};
use sqlx::postgres::PgPool;
use uuid::Uuid;

use super::{answer, definition, verified};
use crate::support::TestDb;
use crate::support::flows::{Step, claim_one, define, drain, start, step, worker};
use crate::support::invariants::assert_invariants;
use crate::support::rows::{count, messages, run};

fn changed() -> Vec<Step> {
    vec![step("x"), step("y").deps(&["x"])]
}

/// A database of this environment, with a flow `orders` that has a run, and a flow beside it.
async fn database(environment: &str) -> (TestDb, Uuid) {
    let db = TestDb::new().await;
    sqlx::query("select pgflow.set_environment($1)")
        .bind(environment)
        .execute(&db.pool)
        .await
        .expect("it can be chosen");
    for flow in ["orders", "other"] {
        define(&db.pool, flow, &[step("a")]).await;
    }
    start(&db.pool, "other", json!({})).await;
    let run = start(&db.pool, "orders", json!({})).await;
    (db, run)
}

async fn deprecated(pool: &PgPool, worker: Uuid) -> bool {
    sqlx::query_scalar("select deprecated_at is not null from pgflow.workers where worker_id = $1")
        .bind(worker)
        .fetch_one(pool)
        .await
        .expect("the worker has a row")
}

#[tokio::test]
async fn a_changed_flow_is_compiled_anew_and_its_old_runs_go() {
    let (db, _) = database("local").await;
    let answered = answer(&db.pool, &changed()).await;
    assert_eq!(answered["status"], "recompiled");
    assert_eq!(answered["mismatch_kind"], "shape");
    assert_eq!(
        answered["differences"][0],
        "number of steps: 2 in the code, 1 in the database"
    );
    assert_eq!(answer(&db.pool, &changed()).await, verified());

    assert_eq!(count(&db.pool, "pgflow.runs").await, 1, "that of `other`");
    assert_eq!(messages(&db.pool, "orders").await, []);
    assert_eq!(messages(&db.pool, "other").await.len(), 1);
    let run_id = start(&db.pool, "orders", json!({})).await;
    let worker = worker(&db.pool, "orders").await;
    assert_eq!(drain(&db.pool, worker, |_| json!(1)).await, 2);
    assert_eq!(run(&db.pool, run_id).await.status, "completed");
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn while_a_worker_lives_it_is_told_to_stop_and_nothing_is_deleted() {
    let (db, run_id) = database("local").await;
    let [living, of_other] = [
        worker(&db.pool, "orders").await,
        worker(&db.pool, "other").await,
    ];
    claim_one(&db.pool, living).await;
    let before = definition(&db.pool).await;
    for _ in 0..2 {
        let answered = answer(&db.pool, &changed()).await;
        assert_eq!(answered["status"], "draining");
        let workers = answered["workers"].as_array().expect("a list");
        let who: Vec<[&Value; 2]> = workers
            .iter()
            .map(|w| [&w["worker_id"], &w["started_tasks"]])
            .collect();
        assert_eq!(json!(who), json!([[living, 1]]));
    }
    assert!(deprecated(&db.pool, living).await);
    assert!(!deprecated(&db.pool, of_other).await);
    assert_eq!(definition(&db.pool).await, before);
    assert_eq!(run(&db.pool, run_id).await.status, "started");
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_worker_that_stopped_or_died_is_not_waited_for_nor_are_its_tasks() {
    for end in [
        "update pgflow.workers set stopped_at = now()",
        "update pgflow.workers set last_heartbeat_at = now() - interval '7 seconds'",
    ] {
        let (db, _) = database("local").await;
        let gone = worker(&db.pool, "orders").await;
        claim_one(&db.pool, gone).await;
        sqlx::query(end).execute(&db.pool).await.expect("ended");
        assert_eq!(
            answer(&db.pool, &changed()).await["status"],
            "recompiled",
            "after {end}"
        );
        assert_eq!(count(&db.pool, "pgflow.step_tasks").await, 1, "of `other`");
        assert_invariants(&db.pool).await;
    }
}

#[tokio::test]
async fn in_production_nobody_is_told_to_stop_and_nothing_changes() {
    let (db, run_id) = database("production").await;
    let living = worker(&db.pool, "orders").await;
    let before = definition(&db.pool).await;
    let answered = answer(&db.pool, &changed()).await;
    assert_eq!(answered["status"], "mismatch");
    assert_eq!(answered["workers"], json!([]));
    assert!(!deprecated(&db.pool, living).await);
    assert_eq!(definition(&db.pool).await, before);
    assert_eq!(run(&db.pool, run_id).await.status, "started");
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn an_equal_flow_is_verified_there_too() {
    let (db, run_id) = database("local").await;
    let living = worker(&db.pool, "orders").await;
    assert_eq!(answer(&db.pool, &[step("a")]).await, verified());
    assert!(!deprecated(&db.pool, living).await);
    assert_eq!(run(&db.pool, run_id).await.status, "started");
    assert_invariants(&db.pool).await;
}
