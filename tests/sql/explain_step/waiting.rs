//! Steps whose tasks wait in their queue.

use serde_json::{Value, json};
use sqlx::types::chrono::{DateTime, Utc};
use sqlx::{AssertSqlSafe, PgPool};

use super::{explain, keep_workers_alive, said};
use crate::support::TestDb;
use crate::support::flows::{
    claim_one, define, define_with_step_queues, fail, start, step, step_worker, worker,
};
use crate::support::invariants::assert_invariants;
use crate::support::rows::messages;
use crate::support::runs::database_with;

async fn execute(pool: &PgPool, sql: &'static str) {
    let done = sqlx::raw_sql(AssertSqlSafe(sql)).execute(pool).await;
    done.unwrap_or_else(|error| panic!("{sql}: {error}"));
}

/// Returns whether the answer tells when the queue's first message can be read, in `visible_at` and
/// at the end of its message.
async fn tells_when(pool: &PgPool, explained: &Value) -> bool {
    let messages = messages(pool, "f").await;
    let visible_at = messages.iter().map(|message| message.visible_at).min();
    let told: DateTime<Utc> =
        serde_json::from_value(explained["visible_at"].clone()).expect("a timestamp");
    let text: String = sqlx::query_scalar("select $1::text")
        .bind(visible_at)
        .fetch_one(pool)
        .await
        .expect("a timestamp can be written");
    Some(told) == visible_at && said(explained).1.ends_with(&format!(" {text}."))
}

#[tokio::test]
async fn a_step_with_a_start_delay_tells_when_it_may_start() {
    let (db, _worker) = database_with(&[step("later").start_delay(600)]).await;
    let run_id = start(&db.pool, "f", json!({})).await;
    let explained = explain(&db.pool, run_id, "later").await;
    let (reason, message) = said(&explained);
    assert_eq!(reason, "start_delay");
    assert!(
        message.starts_with("Its start is delayed until "),
        "{message}"
    );
    assert!(tells_when(&db.pool, &explained).await, "{explained}");
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_step_that_is_to_be_retried_tells_when() {
    let (db, worker) = database_with(&[step("a").base_delay(100)]).await;
    let run_id = start(&db.pool, "f", json!({})).await;
    let task = claim_one(&db.pool, worker).await;
    fail(&db.pool, &task, "again").await;
    let explained = explain(&db.pool, run_id, "a").await;
    let (reason, message) = said(&explained);
    assert_eq!(reason, "retry_delay");
    assert!(
        message.starts_with("An attempt failed; the next one may start at "),
        "{message}"
    );
    assert!(tells_when(&db.pool, &explained).await, "{explained}");
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn the_task_that_can_be_read_first_speaks_for_the_step() {
    let (db, worker) = database_with(&[step("each").map().base_delay(100)]).await;
    let run_id = start(&db.pool, "f", json!([1, 2])).await;
    let first = claim_one(&db.pool, worker).await;
    fail(&db.pool, &first, "again").await;
    keep_workers_alive(&db.pool).await;
    let explained = explain(&db.pool, run_id, "each").await;
    assert_eq!(said(&explained).0, "waiting_for_worker");
    let second = claim_one(&db.pool, worker).await;
    assert_eq!(said(&explain(&db.pool, run_id, "each").await).0, "running");
    fail(&db.pool, &second, "again").await;
    let explained = explain(&db.pool, run_id, "each").await;
    assert_eq!(said(&explained).0, "retry_delay");
    assert!(tells_when(&db.pool, &explained).await, "{explained}");
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_waiting_task_whose_message_is_gone_is_said_to_be_lost() {
    let (db, worker) = database_with(&[step("each").map()]).await;
    let single = start(&db.pool, "f", json!([1])).await;
    let of_three = start(&db.pool, "f", json!([1, 2, 3])).await;
    claim_one(&db.pool, worker).await;
    execute(&db.pool, "delete from pgmq.q_f").await;
    // What runs goes before what is lost.
    assert_eq!(said(&explain(&db.pool, single, "each").await).0, "running");
    execute(
        &db.pool,
        "update pgflow.step_tasks set status = 'queued' where status = 'started'",
    )
    .await;
    assert_eq!(
        said(&explain(&db.pool, single, "each").await),
        (
            "message_missing",
            "Its task waits, but its message is gone from queue \"f\": somebody removed it."
        )
    );
    assert_eq!(
        said(&explain(&db.pool, of_three, "each").await),
        (
            "message_missing",
            "3 of its 3 tasks wait, but their messages are gone from queue \"f\": somebody removed them."
        )
    );
    execute(
        &db.pool,
        "update pgflow.step_tasks set status = 'completed', completed_at = now() + interval '1 hour' where task_index > 0",
    )
    .await;
    let lost = (
        "message_missing",
        "1 of its 3 tasks waits, but its message is gone from queue \"f\": somebody removed it.",
    );
    assert_eq!(said(&explain(&db.pool, of_three, "each").await), lost);
    // The whole queue is gone.
    execute(&db.pool, "select pgmq.drop_queue('f')").await;
    assert_eq!(said(&explain(&db.pool, of_three, "each").await), lost);
}

#[tokio::test]
async fn nobody_serves_the_queue() {
    let db = TestDb::new().await;
    define(&db.pool, "f", &[step("a")]).await;
    define(&db.pool, "other", &[step("a")]).await;
    worker(&db.pool, "other").await;
    let run_id = start(&db.pool, "f", json!({})).await;
    let nobody = (
        "no_worker",
        "It waits in queue \"f\", which no live worker serves.",
    );
    let explained = explain(&db.pool, run_id, "a").await;
    assert_eq!(said(&explained), nobody);
    assert_eq!(explained["live_workers"], 0);

    // Neither silent nor deprecated nor stopped workers live.
    for (change, expected) in [
        (
            "last_heartbeat_at = now() - interval '4 seconds'",
            "waiting_for_worker",
        ),
        (
            "last_heartbeat_at = now() - interval '7 seconds'",
            "no_worker",
        ),
        ("deprecated_at = now()", "no_worker"),
        ("stopped_at = now()", "no_worker"),
    ] {
        // In one transaction, where time stands still.
        let mut transaction = db.pool.begin().await.expect("a transaction");
        let inserted = format!(
            "insert into pgflow.workers (worker_id, function_name, flow_slug, queue_name)
             values (gen_random_uuid(), 'test-worker', 'f', 'f');
             update pgflow.workers set {change} where flow_slug = 'f'"
        );
        sqlx::raw_sql(AssertSqlSafe(inserted))
            .execute(&mut *transaction)
            .await
            .expect("a worker can be made");
        let explained: Value = sqlx::query_scalar("select pgflow.explain_step($1, 'a')")
            .bind(run_id)
            .fetch_one(&mut *transaction)
            .await
            .expect("the step can be explained");
        assert_eq!(said(&explained).0, expected, "{change}");
    }
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn the_function_that_served_the_queue_last_is_disabled() {
    let (db, _worker) = database_with(&[step("a")]).await;
    let run_id = start(&db.pool, "f", json!({})).await;
    execute(
        &db.pool,
        "update pgflow.workers set last_heartbeat_at = '2000-01-01', started_at = '2000-01-01';
         update pgflow.worker_functions set enabled = false, disabled_at = now(), disabled_reason = 'unsupported work'",
    )
    .await;
    let explained = explain(&db.pool, run_id, "a").await;
    assert_eq!(
        said(&explained),
        (
            "no_worker",
            "It waits in queue \"f\", which no live worker serves; its worker function is disabled: unsupported work."
        )
    );
    assert_eq!(explained["disabled_reason"], "unsupported work");
    execute(
        &db.pool,
        "update pgflow.worker_functions set disabled_reason = null",
    )
    .await;
    assert_eq!(
        said(&explain(&db.pool, run_id, "a").await).1,
        "It waits in queue \"f\", which no live worker serves; its worker function is disabled: no reason was given."
    );

    // Another function has taken over since, and its worker is only away.
    execute(
        &db.pool,
        "insert into pgflow.worker_functions (function_name) values ('next');
         insert into pgflow.workers (worker_id, function_name, flow_slug, queue_name, last_heartbeat_at)
         values (gen_random_uuid(), 'next', 'f', 'f', '2000-01-01')",
    )
    .await;
    let explained = explain(&db.pool, run_id, "a").await;
    assert_eq!(explained["disabled_reason"], Value::Null);
    assert_eq!(said(&explained).0, "no_worker");
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn live_workers_will_take_it() {
    let (db, _worker) = database_with(&[step("a")]).await;
    let run_id = start(&db.pool, "f", json!({})).await;
    keep_workers_alive(&db.pool).await;
    assert_eq!(
        said(&explain(&db.pool, run_id, "a").await),
        (
            "waiting_for_worker",
            "It waits in queue \"f\", which a live worker serves."
        )
    );
    worker(&db.pool, "f").await;
    keep_workers_alive(&db.pool).await;
    let explained = explain(&db.pool, run_id, "a").await;
    assert_eq!(
        said(&explained),
        (
            "waiting_for_worker",
            "It waits in queue \"f\", which 2 live workers serve."
        )
    );
    assert_eq!(explained["live_workers"], 2);
    assert_eq!(explained["tasks"], json!({"queued": 1}));
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn with_step_queues_only_workers_of_the_step_count() {
    let db = TestDb::new().await;
    define_with_step_queues(&db.pool, "f", &[step("a"), step("b")]).await;
    let run_id = start(&db.pool, "f", json!({})).await;
    step_worker(&db.pool, "f", "a").await;
    keep_workers_alive(&db.pool).await;
    assert_eq!(
        said(&explain(&db.pool, run_id, "a").await).1,
        "It waits in queue \"f__a\", which a live worker serves."
    );
    assert_eq!(
        said(&explain(&db.pool, run_id, "b").await).1,
        "It waits in queue \"f__b\", which no live worker serves."
    );
    assert_invariants(&db.pool).await;
}
