//! Pruning while runs are started and worked on.

use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use serde_json::json;
use sqlx::postgres::PgPool;
use tokio::task::JoinSet;
use tokio::time::timeout;
use uuid::Uuid;

use crate::support::flows::{claim, complete, fail, start, step, worker};
use crate::support::invariants::assert_invariants;
use crate::support::rows::{archived, count, messages};
use crate::support::runs::{database_with, fail_for_good};

const RUNS: i32 = 30;
static PRUNED: AtomicI32 = AtomicI32::new(0);

fn all_pruned() -> bool {
    PRUNED.load(Ordering::Relaxed) >= RUNS
}

async fn start_runs(pool: PgPool) {
    for n in 0..RUNS {
        let outcome = if n % 2 == 0 { "fails" } else { "completes" };
        start(&pool, "f", json!(outcome)).await;
    }
}

/// Nothing that a worker reports is late here: an error, or another answer, means that a run was
/// pruned under its hands.
async fn work(pool: PgPool, worker: Uuid) {
    while !all_pruned() {
        for task in claim(&pool, worker, 5).await {
            match (task.step_slug.as_str(), task.attempt) {
                ("list", 1) => assert_eq!(fail(&pool, &task, "again").await, "queued"),
                ("list", _) => {
                    let list = json!([task.input, task.input]);
                    assert_eq!(complete(&pool, &task, list).await, "completed");
                }
                ("strict", _) => assert_eq!(fail_for_good(&pool, &task, "no").await, "failed"),
                _ => assert_eq!(
                    complete(&pool, &task, task.input.clone()).await,
                    "completed"
                ),
            }
        }
    }
}

async fn prune(pool: PgPool) {
    while !all_pruned() {
        let removed: i32 =
            sqlx::query_scalar("select pgflow.prune_data_older_than('0', max_runs => 7)")
                .fetch_one(&pool)
                .await
                .expect("ended runs can be removed");
        PRUNED.fetch_add(removed, Ordering::Relaxed);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn under_load_what_has_ended_is_pruned_once_and_what_runs_is_not() {
    let (db, first) = database_with(&[
        step("list"),
        step("each").map().deps(&["list"]),
        step("strict")
            .deps(&["each"])
            .required(json!({"each": ["fails"]})),
    ])
    .await;
    let mut sessions = JoinSet::new();
    sessions.spawn(start_runs(db.pool.clone()));
    sessions.spawn(prune(db.pool.clone()));
    for worker in [first, worker(&db.pool, "f").await] {
        sessions.spawn(work(db.pool.clone(), worker));
    }
    let ended = timeout(Duration::from_mins(1), sessions.join_all()).await;
    ended.expect("every run ends and is pruned");
    assert_eq!(PRUNED.load(Ordering::Relaxed), RUNS, "each is counted once");
    for table in ["pgflow.runs", "pgflow.step_states", "pgflow.step_tasks"] {
        assert_eq!(count(&db.pool, table).await, 0, "{table}");
    }
    assert_eq!(messages(&db.pool, "f").await, []);
    assert_eq!(archived(&db.pool, "f").await, [0; 0]);
    let ends: Vec<(String, i64)> = sqlx::query_as(
        "select new_status, count(*) from test_log.transitions where kind = 'run' and new_status <> 'started' group by 1 order by 1",
    )
    .fetch_all(&db.pool)
    .await
    .expect("the log can be read");
    let half = i64::from(RUNS / 2);
    assert_eq!(
        ends,
        [("completed".to_owned(), half), ("failed".to_owned(), half)]
    );
    assert_invariants(&db.pool).await;
}
