//! `postpone_task`: an attempt that was refused for now does not count.

use serde_json::json;
use sqlx::PgPool;
use uuid::Uuid;

use crate::support::flows::{Claimed, claim_one, complete, fail, postpone, start, step};
use crate::support::invariants::assert_invariants;
use crate::support::rows::{archived, messages, raised, run, show_all, task};
use crate::support::runs::{
    age, claim_all, database_with, everything, hidden_by, is_backoff, outline, requeue,
};

/// `uncounted_attempts`, `postponed_count`, and whether there is a `postponed_since`.
async fn counts(pool: &PgPool) -> (i32, i32, bool) {
    sqlx::query_as(
        "select uncounted_attempts, postponed_count, postponed_since is not null from pgflow.step_tasks",
    )
    .fetch_one(pool)
    .await
    .expect("the task can be read")
}

/// The status that the task has after it was postponed.
async fn put_off(pool: &PgPool, task: &Claimed) -> String {
    postpone(pool, task, "0", "429").await.expect("postponed")
}

/// As if the first postponement had been that many seconds earlier.
async fn began_earlier(pool: &PgPool, seconds: i32) {
    sqlx::query(
        "update pgflow.step_tasks set postponed_since = postponed_since - make_interval(secs => $1)",
    )
    .bind(seconds)
    .execute(pool)
    .await
    .expect("the row can be changed");
}

#[tokio::test]
async fn an_attempt_that_was_postponed_counts_neither_against_the_limit_nor_in_the_backoff() {
    let (db, worker) = database_with(&[step("a").max_attempts(2).base_delay(5)]).await;
    let run_id = start(&db.pool, "f", json!({})).await;
    for n in 1..=10 {
        let claimed = claim_one(&db.pool, worker).await;
        assert_eq!((claimed.attempt, claimed.max_attempts), (n, n + 1));
        assert_eq!(put_off(&db.pool, &claimed).await, "queued");
        assert_eq!(counts(&db.pool).await, (n, n, true));
        assert_invariants(&db.pool).await;
    }
    let failed = claim_one(&db.pool, worker).await;
    let hidden = hidden_by(&db.pool, "f", failed.message_id, async {
        assert_eq!(fail(&db.pool, &failed, "500").await, "queued");
    });
    let hidden = hidden.await;
    assert!(is_backoff(&hidden, 10), "{hidden:?}");
    show_all(&db.pool, "f").await;
    let last = claim_one(&db.pool, worker).await;
    assert_eq!((last.attempt, last.max_attempts), (12, 12));
    assert_eq!(fail(&db.pool, &last, "500").await, "failed");
    assert_eq!(outline(&db.pool, run_id).await, "run failed, a failed");
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn the_task_waits_as_long_as_asked_and_up_to_a_tenth_more() {
    let (db, worker) = database_with(&[step("m").map()]).await;
    let elements: Vec<i32> = (0..50).collect();
    start(&db.pool, "f", json!(elements)).await;
    for task in claim_all(&db.pool, worker).await {
        postpone(&db.pool, &task, "1000.5", "429")
            .await
            .expect("postponed");
    }
    let (least, most, different): (f64, f64, i64) = sqlx::query_as(
        "select extract(epoch from min(vt) - now())::float8, extract(epoch from max(vt) - now())::float8,
             count(distinct floor(extract(epoch from vt)))
         from pgmq.q_f",
    )
    .fetch_one(&db.pool)
    .await
    .expect("the queue can be read");
    assert!(least > 990.0 && most < 1100.6, "{least} to {most} s");
    assert!(different > 10, "they come back at {different} moments");
    let (least, most): (i32, i32) =
        sqlx::query_as("select min(retry_delay), max(retry_delay) from pgflow.step_tasks")
            .fetch_one(&db.pool)
            .await
            .expect("the tasks can be read");
    assert!(least >= 1001 && most <= 1101, "{least} to {most} s");
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_fraction_of_a_second_is_one() {
    let (db, worker) = database_with(&[step("a")]).await;
    start(&db.pool, "f", json!({})).await;
    let task = claim_one(&db.pool, worker).await;
    postpone(&db.pool, &task, "0.4", "429")
        .await
        .expect("postponed");
    let (is_hidden, is_short): (bool, bool) = sqlx::query_as(
        "select q.vt > t.postponed_since, q.vt < t.postponed_since + interval '0.9 seconds'
         from pgmq.q_f q, pgflow.step_tasks t",
    )
    .fetch_one(&db.pool)
    .await
    .expect("the queue can be read");
    assert!(is_hidden && is_short);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_task_that_was_only_postponed_for_too_long_is_given_up_and_its_mode_decides() {
    for (mode, expected) in [
        ("fail", "run failed, a failed"),
        ("skip", "run completed, a skipped: handler_failed"),
    ] {
        let (db, worker) =
            database_with(&[step("a").give_up_after(3600).when_exhausted(mode)]).await;
        let run_id = start(&db.pool, "f", json!({})).await;
        for aged in [3500, 0, 200] {
            let claimed = claim_one(&db.pool, worker).await;
            assert_eq!(put_off(&db.pool, &claimed).await, "queued");
            began_earlier(&db.pool, aged).await;
        }
        let since: String =
            sqlx::query_scalar("select postponed_since::text from pgflow.step_tasks")
                .fetch_one(&db.pool)
                .await
                .expect("the task can be read");
        let claimed = claim_one(&db.pool, worker).await;
        assert_eq!(put_off(&db.pool, &claimed).await, "failed");
        assert_eq!(outline(&db.pool, run_id).await, expected);
        let error =
            format!("postponed 4 times since {since}, for longer than give_up_after (3600 s): 429");
        assert_eq!(task(&db.pool, run_id, "a").await.error_message, Some(error));
        assert_eq!(archived(&db.pool, "f").await.len(), 1);
        assert_invariants(&db.pool).await;
    }
}

#[tokio::test]
async fn it_is_given_up_after_a_day_where_nothing_is_said() {
    let (db, worker) = database_with(&[step("a")]).await;
    start(&db.pool, "f", json!({})).await;
    for (aged, status) in [(86_000, "queued"), (500, "queued"), (0, "failed")] {
        let claimed = claim_one(&db.pool, worker).await;
        assert_eq!(put_off(&db.pool, &claimed).await, status);
        began_earlier(&db.pool, aged).await;
    }
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_failure_or_a_lost_worker_between_begins_a_new_series() {
    let (db, worker) = database_with(&[step("a").max_attempts(9).give_up_after(60)]).await;
    let run_id = start(&db.pool, "f", json!({})).await;
    for is_failure in [true, false] {
        let claimed = claim_one(&db.pool, worker).await;
        put_off(&db.pool, &claimed).await;
        began_earlier(&db.pool, 1000).await;
        let claimed = claim_one(&db.pool, worker).await;
        if is_failure {
            fail(&db.pool, &claimed, "500").await;
        } else {
            age(&db.pool, run_id, "a", 3600).await;
            assert_eq!(requeue(&db.pool).await, 1);
        }
        let (_, postponed, is_since) = counts(&db.pool).await;
        assert_eq!((postponed, is_since), (0, false));
        let claimed = claim_one(&db.pool, worker).await;
        assert_eq!(put_off(&db.pool, &claimed).await, "queued");
    }
    assert_eq!(counts(&db.pool).await, (4, 1, true));
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_late_report_changes_nothing() {
    let (db, worker) = database_with(&[step("a"), step("b").deps(&["a"])]).await;
    let run_id = start(&db.pool, "f", json!({})).await;
    let first = claim_one(&db.pool, worker).await;
    put_off(&db.pool, &first).await;
    let queued = everything(&db.pool, "f").await;
    assert_eq!(put_off(&db.pool, &first).await, "queued");
    assert_eq!(everything(&db.pool, "f").await, queued, "made again");

    let second = claim_one(&db.pool, worker).await;
    let started = everything(&db.pool, "f").await;
    assert_eq!(put_off(&db.pool, &first).await, "started");
    assert_eq!(everything(&db.pool, "f").await, started, "another attempt");

    complete(&db.pool, &second, json!(1)).await;
    let completed = everything(&db.pool, "f").await;
    assert_eq!(put_off(&db.pool, &second).await, "completed");
    assert_eq!(everything(&db.pool, "f").await, completed);
    assert_eq!(run(&db.pool, run_id).await.status, "started");
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn without_an_attempt_it_speaks_for_the_current_one_and_a_cause_may_be_missing() {
    let (db, worker) = database_with(&[step("a")]).await;
    let run_id = start(&db.pool, "f", json!({})).await;
    claim_one(&db.pool, worker).await;
    sqlx::query("select pgflow.postpone_task($1, 'a', 0, null, 5)")
        .bind(run_id)
        .execute(&db.pool)
        .await
        .expect("postponed");
    let task = task(&db.pool, run_id, "a").await;
    assert_eq!(task.status, "queued");
    let cause = "postponed without a message";
    assert_eq!(task.error_message.as_deref(), Some(cause));
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn what_is_no_delay_and_what_is_no_task_is_refused() {
    let (db, worker) = database_with(&[step("a")]).await;
    start(&db.pool, "f", json!({})).await;
    let claimed = claim_one(&db.pool, worker).await;
    let before = everything(&db.pool, "f").await;
    for delay in ["-1", "-0.1", "NaN", "Infinity", "1900000001"] {
        assert_eq!(
            raised(postpone(&db.pool, &claimed, delay, "x").await),
            format!("PF009: delay is {delay} seconds; it must be between 0 and 1900000000")
        );
    }
    let missing = sqlx::query("select pgflow.postpone_task($1, 'a', 0, 'x', null)")
        .bind(claimed.run_id)
        .execute(&db.pool)
        .await;
    assert_eq!(
        raised(missing),
        "PF009: delay is NULL seconds; it must be between 0 and 1900000000"
    );
    let unknown = Claimed {
        run_id: Uuid::from_u128(7),
        ..claimed
    };
    assert_eq!(
        raised(postpone(&db.pool, &unknown, "1", "x").await),
        format!(
            "PF003: there is no task \"a\" [0] in run {}",
            unknown.run_id
        )
    );
    assert_eq!(everything(&db.pool, "f").await, before);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_task_whose_message_is_gone_is_exhausted() {
    let (db, worker) = database_with(&[step("a").when_exhausted("skip")]).await;
    let run_id = start(&db.pool, "f", json!({})).await;
    let claimed = claim_one(&db.pool, worker).await;
    sqlx::query("select pgmq.delete('f', $1)")
        .bind(claimed.message_id)
        .execute(&db.pool)
        .await
        .expect("the message can be deleted");
    assert_eq!(put_off(&db.pool, &claimed).await, "failed");
    assert_eq!(
        task(&db.pool, run_id, "a").await.error_message.as_deref(),
        Some("429 (not retried: its message is gone from queue \"f\")")
    );
    assert_eq!(messages(&db.pool, "f").await, []);
    assert_invariants(&db.pool).await;
}
