//! `lost_attempts`: which attempts have lost their meaning while they run.

use serde_json::json;
use sqlx::Connection;
use sqlx::postgres::{PgConnection, PgExecutor};
use uuid::Uuid;

use super::stored::unchanged;
use crate::support::TestDb;
use crate::support::flows::{
    Claimed, claim, claim_one, complete, define, fail, start, step, worker,
};
use crate::support::invariants::assert_invariants;
use crate::support::rows::raised;
use crate::support::runs::{age, claim_all, database_with, fail_for_good, of_step, requeue};

type Attempt<'a> = (Uuid, &'a str, i32, i32);

fn attempt(task: &Claimed) -> Attempt<'_> {
    (task.run_id, &task.step_slug, task.task_index, task.attempt)
}

async fn lost(db: impl PgExecutor<'_>, attempts: &[Attempt<'_>]) -> Vec<i32> {
    let run_ids: Vec<Uuid> = attempts.iter().map(|a| a.0).collect();
    let steps: Vec<&str> = attempts.iter().map(|a| a.1).collect();
    let indexes: Vec<i32> = attempts.iter().map(|a| a.2).collect();
    let numbers: Vec<i32> = attempts.iter().map(|a| a.3).collect();
    sqlx::query_scalar("select pgflow.lost_attempts($1, $2, $3, $4)")
        .bind(run_ids)
        .bind(steps)
        .bind(indexes)
        .bind(numbers)
        .fetch_all(db)
        .await
        .expect("an answer")
}

#[tokio::test]
async fn what_runs_is_not_lost() {
    let (db, worker) = database_with(&[step("a"), step("m").map().deps(&["a"])]).await;
    start(&db.pool, "f", json!({})).await;
    let a = claim_one(&db.pool, worker).await;
    let running = [attempt(&a)];
    let call = lost(&db.pool, &running);
    assert_eq!(unchanged(&db.pool, call).await, [] as [i32; 0]);
    complete(&db.pool, &a, json!([1, 2, 3])).await;
    let tasks = claim_all(&db.pool, worker).await;
    let running: Vec<_> = tasks.iter().map(attempt).collect();
    assert_eq!(running.len(), 3);
    assert_eq!(lost(&db.pool, &running).await, [] as [i32; 0]);
    // Its worker may be on its way out.
    sqlx::query("update pgflow.workers set deprecated_at = now()")
        .execute(&db.pool)
        .await
        .expect("told");
    assert_eq!(lost(&db.pool, &running).await, [] as [i32; 0]);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_task_that_was_given_to_somebody_else_is_lost_to_the_first() {
    let (db, worker) = database_with(&[step("a").max_attempts(5)]).await;
    let run = start(&db.pool, "f", json!({})).await;
    let first = claim_one(&db.pool, worker).await;
    age(&db.pool, run, "a", 1000).await;
    assert_eq!(requeue(&db.pool).await, 1);
    assert_eq!(lost(&db.pool, &[attempt(&first)]).await, [1], "requeued");
    let second = claim_one(&db.pool, worker).await;
    assert_eq!(
        lost(&db.pool, &[attempt(&second), attempt(&first)]).await,
        [2]
    );
    fail(&db.pool, &second, "again").await;
    assert_eq!(lost(&db.pool, &[attempt(&second)]).await, [1], "it failed");
    let third = claim_one(&db.pool, worker).await;
    let all = [attempt(&first), attempt(&second), attempt(&third)];
    assert_eq!(lost(&db.pool, &all).await, [1, 2]);
    // An attempt that there never was.
    assert_eq!(
        lost(&db.pool, &[(run, "a", 0, third.attempt + 1)]).await,
        [1]
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_task_that_was_given_back_is_lost() {
    let (db, worker) = database_with(&[step("a")]).await;
    start(&db.pool, "f", json!({})).await;
    let task = claim_one(&db.pool, worker).await;
    sqlx::query("select pgflow.release_tasks($1, array[$2], '{a}', '{0}', '{1}')")
        .bind(worker)
        .bind(task.run_id)
        .execute(&db.pool)
        .await
        .expect("given back");
    assert_eq!(lost(&db.pool, &[attempt(&task)]).await, [1]);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn what_has_ended_is_lost() {
    let (db, worker) = database_with(&[step("a")]).await;
    start(&db.pool, "f", json!({})).await;
    let task = claim_one(&db.pool, worker).await;
    complete(&db.pool, &task, json!(1)).await;
    assert_eq!(lost(&db.pool, &[attempt(&task)]).await, [1]);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn the_end_of_a_run_or_step_loses_what_runs_beside_it() {
    let (db, worker) = database_with(&[
        step("each").map().when_exhausted("skip"),
        step("fatal").map(),
    ])
    .await;
    start(&db.pool, "f", json!([1, 2])).await;
    let mut tasks = claim_all(&db.pool, worker).await;
    assert_eq!(tasks.len(), 4);
    tasks.sort_by(|a, b| (&a.step_slug, a.task_index).cmp(&(&b.step_slug, b.task_index)));
    let all: Vec<_> = tasks.iter().map(attempt).collect();
    fail_for_good(&db.pool, &tasks[0], "no").await;
    assert_eq!(lost(&db.pool, &all).await, [1, 2], "the step was skipped");
    fail_for_good(&db.pool, &tasks[3], "no").await;
    assert_eq!(lost(&db.pool, &all).await, [1, 2, 3, 4], "the run failed");
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_deleted_run_has_lost_everything() {
    let db = TestDb::new().await;
    for flow in ["f", "g"] {
        define(&db.pool, flow, &[step("a"), step("b")]).await;
        start(&db.pool, flow, json!({})).await;
    }
    let gone = worker(&db.pool, "f").await;
    let gone = claim(&db.pool, gone, 2).await;
    let kept = worker(&db.pool, "g").await;
    let kept = claim(&db.pool, kept, 2).await;
    sqlx::query("select pgflow.delete_flow_and_data('f')")
        .execute(&db.pool)
        .await
        .expect("deleted");
    let mixed = [
        attempt(&kept[0]),
        attempt(&gone[1]),
        attempt(&kept[1]),
        attempt(&gone[0]),
        attempt(&gone[1]),
    ];
    assert_eq!(lost(&db.pool, &mixed).await, [2, 4, 5]);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn positions_count_from_1_and_each_key_part_matters() {
    let (db, worker) = database_with(&[step("a"), step("m").map().deps(&["a"])]).await;
    start(&db.pool, "f", json!({})).await;
    start(&db.pool, "f", json!({})).await;
    let roots = claim_all(&db.pool, worker).await;
    complete(&db.pool, &roots[0], json!([1, 2])).await;
    let elements = claim_all(&db.pool, worker).await;
    let (run, other_run) = (elements[0].run_id, roots[1].run_id);
    assert_ne!(run, other_run);
    let attempts = [
        (run, "m", 0, 1),
        (run, "m", 2, 1),
        (run, "m", 1, 1),
        (run, "M", 1, 1),
        (other_run, "m", 0, 1),
        (other_run, "a", 0, 1),
        (run, "a", 0, 1),
    ];
    assert_eq!(lost(&db.pool, &attempts).await, [2, 4, 5, 7]);
    let task = of_step(&roots[1..], "a");
    assert_eq!(lost(&db.pool, &[attempt(task)]).await, [] as [i32; 0]);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn arrays_of_different_lengths_are_refused() {
    let db = TestDb::new().await;
    let run = Uuid::now_v7();
    for arrays in [
        "array[$1], '{}', '{}', '{}'",
        "array[$1], '{a,b}', '{0}', '{1}'",
        "array[$1], '{a}', '{0,1}', '{1}'",
        "array[$1], '{a}', '{0}', '{}'",
        "array[$1], '{a}', '{0}', null",
    ] {
        let query = format!("select pgflow.lost_attempts({arrays})");
        let refused = sqlx::query(sqlx::AssertSqlSafe(query))
            .bind(run)
            .execute(&db.pool)
            .await;
        assert_eq!(
            raised(refused),
            "PF009: lost_attempts got arrays of different lengths",
            "{arrays}"
        );
    }
}

#[tokio::test]
async fn no_attempts_are_no_error_and_nothing_is_read_for_them() {
    let (db, _) = database_with(&[step("a")]).await;
    start(&db.pool, "f", json!({})).await;
    let mut session = PgConnection::connect(&db.url).await.expect("a session");
    let mut session = session.begin().await.expect("a transaction");
    assert_eq!(lost(&mut *session, &[]).await, [] as [i32; 0]);
    let reads: i64 = sqlx::query_scalar(
        "select coalesce(sum(pg_stat_get_xact_numscans(oid)), 0)::bigint from pg_class
         where relnamespace = 'pgflow'::regnamespace and relkind in ('r', 'i')",
    )
    .fetch_one(&mut *session)
    .await
    .expect("counts can be read");
    assert_eq!(reads, 0);
}
