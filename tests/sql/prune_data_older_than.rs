//! `prune_data_older_than`: what ended long ago goes, everything else stays.

use serde_json::json;
use sqlx::postgres::{PgExecutor, PgPool};
use uuid::Uuid;

use crate::support::TestDb;
use crate::support::flows::{claim_one, complete, define, drain, start, step, worker};
use crate::support::invariants::assert_invariants;
use crate::support::rows::{archived, count, messages, raised, run};
use crate::support::runs::{claim_all, database_with, fail_for_good, of_step};
use crate::support::sessions::{holding, without_waiting};

async fn prune(db: impl PgExecutor<'_>, retention: &str) -> i32 {
    sqlx::query_scalar("select pgflow.prune_data_older_than($1::text::interval)")
        .bind(retention)
        .fetch_one(db)
        .await
        .expect("old data can be removed")
}

/// Makes a run look as if everything in it had happened this many days earlier.
async fn age_run(pool: &PgPool, run_id: Uuid, days: i32) {
    for change in [
        "update pgflow.runs set started_at = started_at - $2, completed_at = completed_at - $2, failed_at = failed_at - $2
         where run_id = $1",
        "update pgflow.step_states set created_at = created_at - $2, started_at = started_at - $2, completed_at = completed_at - $2,
            failed_at = failed_at - $2, skipped_at = skipped_at - $2
         where run_id = $1",
        "update pgflow.step_tasks set queued_at = queued_at - $2, started_at = started_at - $2, completed_at = completed_at - $2,
            failed_at = failed_at - $2
         where run_id = $1",
    ] {
        let interval = sqlx::postgres::types::PgInterval {
            months: 0,
            days,
            microseconds: 0,
        };
        let aged = sqlx::query(change).bind(run_id).bind(interval);
        aged.execute(pool).await.expect("rows can be aged");
    }
}

/// Returns the remaining rows of some runs in each table.
async fn left_of(pool: &PgPool, runs: &[Uuid]) -> [i64; 3] {
    let mut left = [0; 3];
    for (n, query) in [
        "select count(*) from pgflow.runs where run_id = any ($1)",
        "select count(*) from pgflow.step_states where run_id = any ($1)",
        "select count(*) from pgflow.step_tasks where run_id = any ($1)",
    ]
    .into_iter()
    .enumerate()
    {
        let counted = sqlx::query_scalar(query).bind(runs).fetch_one(pool).await;
        left[n] = counted.expect("rows can be counted");
    }
    left
}

#[tokio::test]
async fn an_old_completed_run_goes_with_steps_tasks_and_archived_messages() {
    let (db, worker) = database_with(&[step("a"), step("each").map().deps(&["a"])]).await;
    let old = start(&db.pool, "f", json!({})).await;
    drain(&db.pool, worker, |_| json!([1, 2])).await;
    let recent = start(&db.pool, "f", json!({})).await;
    drain(&db.pool, worker, |_| json!([1])).await;
    assert_eq!(archived(&db.pool, "f").await.len(), 5);
    age_run(&db.pool, old, 31).await;
    age_run(&db.pool, recent, 29).await;

    assert_eq!(prune(&db.pool, "30 days").await, 1);
    assert_eq!(left_of(&db.pool, &[old]).await, [0, 0, 0]);
    assert_eq!(left_of(&db.pool, &[recent]).await, [1, 2, 2]);
    assert_eq!(archived(&db.pool, "f").await, [4, 5]);
    assert_eq!(prune(&db.pool, "30 days").await, 0);
    assert_eq!(count(&db.pool, "pgflow.steps").await, 2);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn an_old_failed_run_goes_with_children_of_every_status() {
    let (db, worker) = database_with(&[
        step("done"),
        step("culprit"),
        step("beside").map().deps(&["done"]),
        step("fragile").when_exhausted("skip"),
        step("unmet").required(json!({"never": 1})),
        step("later").deps(&["culprit"]),
    ])
    .await;
    let old = start(&db.pool, "f", json!({})).await;
    let claimed = claim_all(&db.pool, worker).await;
    complete(&db.pool, of_step(&claimed, "done"), json!([1, 2])).await;
    fail_for_good(&db.pool, of_step(&claimed, "fragile"), "no").await;
    claim_one(&db.pool, worker).await;
    fail_for_good(&db.pool, of_step(&claimed, "culprit"), "no").await;
    let statuses: Vec<String> = sqlx::query_scalar(
        "select distinct status from pgflow.step_tasks union select distinct status from pgflow.step_states order by 1",
    )
    .fetch_all(&db.pool)
    .await
    .expect("statuses can be read");
    let every = [
        "cancelled",
        "completed",
        "created",
        "failed",
        "skipped",
        "started",
    ];
    assert_eq!(statuses, every);
    age_run(&db.pool, old, 8).await;

    assert_eq!(prune(&db.pool, "7 days").await, 1);
    assert_eq!(left_of(&db.pool, &[old]).await, [0, 0, 0]);
    assert_eq!(archived(&db.pool, "f").await, [0; 0]);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_failed_run_that_ended_lately_stays_with_all_that_belongs_to_it() {
    let (db, worker) =
        database_with(&[step("a"), step("b"), step("later").deps(&["a", "b"])]).await;
    let [old, recent] = [
        start(&db.pool, "f", json!({})).await,
        start(&db.pool, "f", json!({})).await,
    ];
    for task in claim_all(&db.pool, worker).await {
        if task.step_slug == "a" {
            fail_for_good(&db.pool, &task, "no").await;
        }
    }
    age_run(&db.pool, old, 31).await;
    age_run(&db.pool, recent, 29).await;
    assert_eq!(prune(&db.pool, "30 days").await, 1);
    assert_eq!(left_of(&db.pool, &[old]).await, [0, 0, 0]);
    assert_eq!(left_of(&db.pool, &[recent]).await, [1, 3, 2]);
    assert_eq!(archived(&db.pool, "f").await.len(), 2);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn what_is_exactly_as_old_as_the_retention_stays() {
    let (db, gone) = database_with(&[step("a")]).await;
    let stays = worker(&db.pool, "f").await;
    let mut runs = Vec::new();
    for _ in 0..2 {
        runs.push(start(&db.pool, "f", json!({})).await);
        drain(&db.pool, stays, |_| json!(1)).await;
    }
    let mut session = db.pool.begin().await.expect("one moment for all");
    for (id, worker, age) in [
        (runs[0], gone, "3 days 1 microsecond"),
        (runs[1], stays, "3 days"),
    ] {
        let end_run = sqlx::query(
            "update pgflow.runs set started_at = now() - interval '9 days', completed_at = now() - $2::text::interval where run_id = $1",
        );
        let end_run = end_run.bind(id).bind(age).execute(&mut *session).await;
        assert_eq!(end_run.expect("aged").rows_affected(), 1);
        let stop = sqlx::query(
            "update pgflow.workers set stopped_at = now() - $2::text::interval where worker_id = $1",
        );
        let stop = stop.bind(worker).bind(age).execute(&mut *session).await;
        assert_eq!(stop.expect("aged").rows_affected(), 1);
    }
    assert_eq!(prune(&mut *session, "3 days").await, 1);
    session.commit().await.expect("committed");
    let left: Vec<Uuid> = sqlx::query_scalar("select run_id from pgflow.runs")
        .fetch_all(&db.pool)
        .await
        .expect("runs can be read");
    assert_eq!(left, [runs[1]]);
    let left: Vec<Uuid> = sqlx::query_scalar("select worker_id from pgflow.workers")
        .fetch_all(&db.pool)
        .await
        .expect("workers can be read");
    assert_eq!(left, [stays]);
}

#[tokio::test]
async fn a_run_that_is_not_over_stays_however_old_it_is() {
    let (db, worker) = database_with(&[step("a")]).await;
    let id = start(&db.pool, "f", json!({})).await;
    age_run(&db.pool, id, 4000).await;
    assert_eq!(prune(&db.pool, "0").await, 0);
    assert_eq!(left_of(&db.pool, &[id]).await, [1, 1, 1]);
    assert_eq!(drain(&db.pool, worker, |_| json!(1)).await, 1);
    assert_eq!(run(&db.pool, id).await.status, "completed");
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_run_ended_when_it_ended_and_not_when_it_began() {
    let (db, worker) = database_with(&[step("a")]).await;
    let id = start(&db.pool, "f", json!({})).await;
    age_run(&db.pool, id, 100).await;
    drain(&db.pool, worker, |_| json!(1)).await;
    assert_eq!(prune(&db.pool, "1 day").await, 0);
    assert_eq!(left_of(&db.pool, &[id]).await, [1, 1, 1]);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn messages_put_back_by_hand_or_never_sent_are_no_obstacle() {
    let (db, worker) = database_with(&[step("a"), step("b")]).await;
    let id = start(&db.pool, "f", json!({})).await;
    drain(&db.pool, worker, |_| json!(1)).await;
    sqlx::raw_sql(
        "insert into pgmq.q_f (msg_id, read_ct, enqueued_at, vt, message) overriding system value
         select msg_id, read_ct, enqueued_at, vt, message from pgmq.a_f order by msg_id limit 1;
         update pgflow.step_tasks set message_id = null where step_slug = 'b'",
    )
    .execute(&db.pool)
    .await
    .expect("rows can be changed by hand");
    age_run(&db.pool, id, 2).await;
    assert_eq!(prune(&db.pool, "1 day").await, 1);
    assert_eq!(messages(&db.pool, "f").await, []);
    assert_eq!(left_of(&db.pool, &[id]).await, [0, 0, 0]);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_queue_that_was_dropped_is_no_obstacle() {
    let (db, worker) = database_with(&[step("a")]).await;
    start(&db.pool, "f", json!({})).await;
    drain(&db.pool, worker, |_| json!(1)).await;
    sqlx::raw_sql("select pgmq.drop_queue('f')")
        .execute(&db.pool)
        .await
        .expect("dropped");
    assert_eq!(prune(&db.pool, "0").await, 1);
    assert_eq!(count(&db.pool, "pgflow.runs").await, 0);
}

#[tokio::test]
async fn a_call_is_a_batch_of_the_oldest_runs() {
    let (db, worker) = database_with(&[step("a")]).await;
    let mut ids = Vec::new();
    for days in [10, 40, 20, 30, 1] {
        let id = start(&db.pool, "f", json!({})).await;
        drain(&db.pool, worker, |_| json!(1)).await;
        age_run(&db.pool, id, days).await;
        ids.push(id);
    }
    let batch = "select pgflow.prune_data_older_than('5 days', max_runs => 2)";
    let removed: i32 = sqlx::query_scalar(batch)
        .fetch_one(&db.pool)
        .await
        .expect("removed");
    assert_eq!(removed, 2);
    assert_eq!(left_of(&db.pool, &[ids[1], ids[3]]).await, [0, 0, 0]);
    assert_eq!(left_of(&db.pool, &ids).await, [3, 3, 3]);
    assert_eq!(prune(&db.pool, "5 days").await, 2);
    assert_eq!(left_of(&db.pool, &ids).await, [1, 1, 1]);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn large_runs_make_small_batches() {
    let (db, worker) = database_with(&[step("a")]).await;
    for _ in 0..3 {
        start(&db.pool, "f", json!({})).await;
        drain(&db.pool, worker, |_| json!(1)).await;
    }
    // What the sizes stand for need not be there.
    sqlx::raw_sql("update pgflow.step_states set initial_tasks = 60000")
        .execute(&db.pool)
        .await
        .expect("sizes can be changed by hand");
    assert_eq!(prune(&db.pool, "0").await, 2);
    assert_eq!(prune(&db.pool, "0").await, 1);
    assert_eq!(prune(&db.pool, "0").await, 0);
}

#[tokio::test]
async fn workers_go_when_they_stopped_or_fell_silent_long_ago() {
    let db = TestDb::new().await;
    define(&db.pool, "f", &[step("a")]).await;
    let [live, stopped_lately, stopped, silent, silent_lately] = [
        worker(&db.pool, "f").await,
        worker(&db.pool, "f").await,
        worker(&db.pool, "f").await,
        worker(&db.pool, "f").await,
        worker(&db.pool, "f").await,
    ];
    for (id, change) in [
        (
            stopped_lately,
            "stopped_at = now() - interval '1 hour', last_heartbeat_at = now() - interval '9 days'",
        ),
        (stopped, "stopped_at = now() - interval '3 hours'"),
        (silent, "last_heartbeat_at = now() - interval '25 hours'"),
        (
            silent_lately,
            "last_heartbeat_at = now() - interval '5 hours'",
        ),
    ] {
        let query = format!("update pgflow.workers set {change} where worker_id = $1");
        let changed = sqlx::query(sqlx::AssertSqlSafe(query)).bind(id);
        changed.execute(&db.pool).await.expect("rows can be aged");
    }
    prune(&db.pool, "2 hours").await;
    let mut left: Vec<Uuid> = sqlx::query_scalar("select worker_id from pgflow.workers")
        .fetch_all(&db.pool)
        .await
        .expect("workers can be read");
    left.sort_unstable();
    let mut expected = [live, stopped_lately, silent_lately];
    expected.sort_unstable();
    assert_eq!(left, expected);
}

#[tokio::test]
async fn a_retention_is_an_interval_of_0_or_more_and_a_batch_at_least_one_run() {
    let db = TestDb::new().await;
    for (arguments, error) in [
        (
            "null",
            "PF009: the retention is null; it must be an interval of 0 or more",
        ),
        (
            "interval '-1 day'",
            "PF009: the retention is -1 days; it must be an interval of 0 or more",
        ),
        (
            "interval '1 day', 0",
            "PF009: max_runs is 0; it must be at least 1",
        ),
        (
            "interval '1 day', null",
            "PF009: max_runs is null; it must be at least 1",
        ),
    ] {
        let call = format!("select pgflow.prune_data_older_than({arguments})");
        let refused = sqlx::query(sqlx::AssertSqlSafe(call)).execute(&db.pool);
        assert_eq!(raised(refused.await), error);
    }
    assert_eq!(prune(&db.pool, "100000 years").await, 0);
}

#[tokio::test]
async fn a_run_that_somebody_holds_is_left_for_the_next_call() {
    let (db, worker) = database_with(&[step("a")]).await;
    let id = start(&db.pool, "f", json!({})).await;
    drain(&db.pool, worker, |_| json!(1)).await;
    let held = holding(&db.pool, "select from pgflow.runs for update").await;
    assert_eq!(without_waiting(prune(&db.pool, "0")).await, 0);
    held.rollback().await.expect("let go");
    assert_eq!(left_of(&db.pool, &[id]).await, [1, 1, 1]);
    assert_eq!(prune(&db.pool, "0").await, 1);
}

#[tokio::test]
async fn the_id_of_a_removed_run_can_be_used_again() {
    let (db, worker) = database_with(&[step("a")]).await;
    let id = start(&db.pool, "f", json!({})).await;
    drain(&db.pool, worker, |_| json!(1)).await;
    prune(&db.pool, "0").await;
    let status: String = sqlx::query_scalar("select status from pgflow.start_flow('f', '{}', $1)")
        .bind(id)
        .fetch_one(&db.pool)
        .await
        .expect("started");
    assert_eq!(status, "started");
    assert_eq!(drain(&db.pool, worker, |_| json!(1)).await, 1);
}
