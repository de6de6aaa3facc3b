//! A message of a started task that is read again, as often as it may be: the task continues as if
//! nobody had seen it, and is recovered when its time has come.

use serde_json::{Value, json};
use sqlx::postgres::PgPool;
use sqlx::types::chrono::{DateTime, Utc};

use crate::support::events::Events;
use crate::support::flows::{Claimed, claim, claim_one, complete, start, step, worker};
use crate::support::invariants::assert_invariants;
use crate::support::rows::{Message, messages};
use crate::support::runs::{age, claim_all, database_with, of_step, outline, requeue};

const SECOND: i64 = 1_000_000;

/// Lets a message be read now, as a reader of its own making does.
async fn show(pool: &PgPool, task: &Claimed) {
    sqlx::query("select pgmq.set_vt('f', $1::bigint, 0)")
        .bind(task.message_id)
        .execute(pool)
        .await
        .expect("the message is there");
}

async fn message(pool: &PgPool, task: &Claimed) -> Message {
    let mut messages = messages(pool, "f").await;
    messages.retain(|message| message.id == task.message_id);
    messages.pop().expect("the message is there")
}

/// The whole row of the task, its step's and its run's.
async fn rows(pool: &PgPool, task: &Claimed) -> Value {
    sqlx::query_scalar(
        "select jsonb_build_array(t, s, r)
         from pgflow.step_tasks t join pgflow.step_states s using (run_id, step_slug) join pgflow.runs r on r.run_id = t.run_id
         where t.message_id = $1",
    )
    .bind(task.message_id)
    .fetch_one(pool)
    .await
    .expect("the task is there")
}

/// Microseconds from the start of a task until its message comes into sight.
async fn hidden_after_start(pool: &PgPool, task: &Claimed) -> i64 {
    let started_at: DateTime<Utc> =
        sqlx::query_scalar("select started_at from pgflow.step_tasks where message_id = $1")
            .bind(task.message_id)
            .fetch_one(pool)
            .await
            .expect("the task is there");
    let visible_at = message(pool, task).await.visible_at;
    visible_at.timestamp_micros() - started_at.timestamp_micros()
}

async fn now(pool: &PgPool) -> i64 {
    let now: DateTime<Utc> = sqlx::query_scalar("select clock_timestamp()")
        .fetch_one(pool)
        .await
        .expect("Postgres tells the time");
    now.timestamp_micros()
}

#[tokio::test]
async fn however_often_it_is_read_nothing_but_its_read_count_changes() {
    let (db, first) = database_with(&[step("own").timeout(1000), step("inherited")]).await;
    let second = worker(&db.pool, "f").await;
    start(&db.pool, "f", json!({})).await;
    let tasks = claim_all(&db.pool, first).await;
    let mut events = Events::at_level(&db.pool, "all").await;
    for (slug, deadline) in [("own", 1030), ("inherited", 90)] {
        let task = of_step(&tasks, slug);
        let before = rows(&db.pool, task).await;
        for reads in 2..=21 {
            show(&db.pool, task).await;
            // The worker that runs it, too, may read it again.
            let reader = if reads % 2 == 0 { first } else { second };
            assert!(claim(&db.pool, reader, 10).await.is_empty());
            assert_eq!(rows(&db.pool, task).await, before);
            assert_eq!(message(&db.pool, task).await.read_count, reads);
            let hidden = hidden_after_start(&db.pool, task).await;
            assert_eq!(hidden, deadline * SECOND, "{slug}");
        }
    }
    assert_eq!(events.types(&db.pool).await, "");
    for task in &tasks {
        assert_eq!(task.attempt, 1);
        assert_eq!(complete(&db.pool, task, json!(1)).await, "completed");
    }
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn reads_up_to_the_deadline_do_not_put_recovery_off() {
    let (db, worker) = database_with(&[step("a").timeout(1000)]).await;
    let run_id = start(&db.pool, "f", json!({})).await;
    let task = claim_one(&db.pool, worker).await;
    let mut passed = 0;
    for seconds in [1, 899, 60, 10] {
        age(&db.pool, run_id, "a", seconds).await;
        passed += seconds;
        show(&db.pool, &task).await;
        assert!(claim(&db.pool, worker, 1).await.is_empty());
        let hidden = hidden_after_start(&db.pool, &task).await;
        assert_eq!(hidden, 1030 * SECOND, "{passed} s after its start");
        assert_eq!(requeue(&db.pool).await, 0);
    }
    age(&db.pool, run_id, "a", 60).await;
    assert_eq!(requeue(&db.pool).await, 1, "1030 s after its start");
    let again = claim_one(&db.pool, worker).await;
    assert_eq!((again.attempt, again.message_id), (2, task.message_id));
    assert_eq!(complete(&db.pool, &again, json!(1)).await, "completed");
    assert_eq!(
        outline(&db.pool, run_id).await,
        "run completed, a completed"
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn past_its_deadline_each_read_hides_it_for_a_second_and_recovery_takes_it_all_the_same() {
    let (db, worker) = database_with(&[step("a").timeout(10)]).await;
    let run_id = start(&db.pool, "f", json!({})).await;
    let task = claim_one(&db.pool, worker).await;
    age(&db.pool, run_id, "a", 40).await;
    let before = rows(&db.pool, &task).await;
    for _ in 0..5 {
        show(&db.pool, &task).await;
        let earliest = now(&db.pool).await;
        assert!(claim(&db.pool, worker, 1).await.is_empty());
        let latest = now(&db.pool).await;
        let visible_at = message(&db.pool, &task).await.visible_at;
        let a_second_ago = visible_at.timestamp_micros() - SECOND;
        assert!((earliest..=latest).contains(&a_second_ago));
        assert_eq!(rows(&db.pool, &task).await, before);
    }
    assert_eq!(requeue(&db.pool).await, 1);
    let again = claim_one(&db.pool, worker).await;
    assert_eq!((again.attempt, again.read_count), (2, 7));
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn the_deadline_is_that_of_the_options_of_now() {
    let (db, worker) = database_with(&[step("a").timeout(10)]).await;
    start(&db.pool, "f", json!({})).await;
    let task = claim_one(&db.pool, worker).await;
    for (tuning, seconds) in [
        ("update pgflow.steps set opt_timeout = 100", 130),
        ("update pgflow.steps set opt_timeout = null", 90),
        ("update pgflow.flows set opt_timeout = 70", 100),
    ] {
        let tuned = sqlx::query(tuning).execute(&db.pool).await;
        tuned.expect("options can be tuned");
        show(&db.pool, &task).await;
        assert!(claim(&db.pool, worker, 1).await.is_empty());
        let hidden = hidden_after_start(&db.pool, &task).await;
        assert_eq!(hidden, seconds * SECOND, "{tuning}");
    }
    assert_invariants(&db.pool).await;
}

/// Recovery goes by the same clock, and would not take it earlier.
#[tokio::test]
async fn after_the_clock_was_set_back_the_deadline_counts_from_the_start_as_it_was_stamped() {
    let (db, worker) = database_with(&[step("a")]).await;
    let run_id = start(&db.pool, "f", json!({})).await;
    let task = claim_one(&db.pool, worker).await;
    age(&db.pool, run_id, "a", -3600).await;
    show(&db.pool, &task).await;
    assert!(claim(&db.pool, worker, 1).await.is_empty());
    assert_eq!(hidden_after_start(&db.pool, &task).await, 90 * SECOND);
    assert_eq!(requeue(&db.pool).await, 0);
    age(&db.pool, run_id, "a", 3600 + 90).await;
    assert_eq!(requeue(&db.pool).await, 1);
    assert_eq!(claim_one(&db.pool, worker).await.attempt, 2);
    assert_invariants(&db.pool).await;
}
