//! Retries of `fail_task`: how many, and after which delay.

use std::ops::RangeInclusive;

use serde_json::json;
use sqlx::PgPool;

use crate::support::flows::{Claimed, claim, claim_one, complete, fail, start, step};
use crate::support::invariants::assert_invariants;
use crate::support::rows::{archived, raised, run, show_all, step_state, task};
use crate::support::runs::{
    Failure, claim_all, database_with, everything, fail_for_good, hidden_by, of_step, outline,
    task_statuses, try_fail,
};

/// Fails an attempt; returns for how many seconds that hid its message, which the task's row must say as well.
async fn delay(pool: &PgPool, task: &Claimed, failure: Failure<'_>) -> RangeInclusive<i64> {
    let hidden = hidden_by(pool, "f", task.message_id, async {
        let rows = try_fail(pool, task, failure).await;
        assert_eq!(rows.expect("accepted"), ["queued"]);
    })
    .await;
    let shown = shown_delay(pool, task).await.map(i64::from);
    assert!(
        shown.is_some_and(|shown| hidden.contains(&shown)),
        "hidden for {hidden:?} s, and the row says {shown:?}"
    );
    hidden
}

async fn shown_delay(pool: &PgPool, task: &Claimed) -> Option<i32> {
    sqlx::query_scalar("select retry_delay from pgflow.step_tasks where message_id = $1")
        .bind(task.message_id)
        .fetch_one(pool)
        .await
        .expect("the task can be read")
}

#[tokio::test]
async fn a_failed_attempt_is_retried_until_none_is_left() {
    let (db, worker) = database_with(&[step("a").max_attempts(3)]).await;
    let run_id = start(&db.pool, "f", json!({})).await;
    let mut sent = Vec::new();
    for attempt in 1..=3 {
        let claimed = claim_one(&db.pool, worker).await;
        assert_eq!((claimed.attempt, claimed.max_attempts), (attempt, 3));
        sent.push(claimed.message_id);
        let status = fail(&db.pool, &claimed, &format!("error {attempt}")).await;
        assert_eq!(status, if attempt < 3 { "queued" } else { "failed" });

        let task = task(&db.pool, run_id, "a").await;
        assert_eq!(task.attempts_count, attempt, "counted at the claim only");
        assert_eq!(
            task.error_message,
            Some(format!("error {attempt}")),
            "the last error is kept"
        );
        assert_invariants(&db.pool).await;
    }
    assert_eq!(sent, [sent[0]; 3], "one message serves all attempts");
    assert_eq!(archived(&db.pool, "f").await, [sent[0]]);
    assert_eq!(outline(&db.pool, run_id).await, "run failed, a failed");
    assert_eq!(claim(&db.pool, worker, 10).await, []);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_steps_own_limit_goes_before_the_flows() {
    let (db, worker) = database_with(&[
        step("own").max_attempts(1).when_exhausted("skip"),
        step("flows"),
    ])
    .await;
    let run_id = start(&db.pool, "f", json!({})).await;
    let claimed = claim_all(&db.pool, worker).await;
    assert_eq!(of_step(&claimed, "own").max_attempts, 1);
    assert_eq!(of_step(&claimed, "flows").max_attempts, 3);
    assert_eq!(
        fail(&db.pool, of_step(&claimed, "own"), "x").await,
        "failed"
    );
    assert_eq!(
        fail(&db.pool, of_step(&claimed, "flows"), "x").await,
        "queued"
    );
    assert_eq!(run(&db.pool, run_id).await.status, "started");
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn one_element_of_a_map_is_retried_without_the_others() {
    let (db, worker) = database_with(&[step("m").map()]).await;
    let run_id = start(&db.pool, "f", json!(["x", "y", "z"])).await;
    let claimed = claim_all(&db.pool, worker).await;
    complete(&db.pool, &claimed[0], json!(0)).await;
    fail(&db.pool, &claimed[1], "again").await;
    assert_eq!(
        task_statuses(&db.pool, run_id, "m").await,
        "completed, queued, started"
    );
    assert_eq!(
        step_state(&db.pool, run_id, "m").await.remaining_tasks,
        Some(2)
    );
    let again = claim_one(&db.pool, worker).await;
    assert_eq!((again.task_index, again.input), (1, json!("y")));
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn the_delay_doubles_with_each_attempt() {
    let (db, worker) = database_with(&[
        step("a").base_delay(5).max_attempts(6),
        step("b").base_delay(0).max_attempts(6),
    ])
    .await;
    start(&db.pool, "f", json!({})).await;
    for expected in [10, 20, 40, 80, 160] {
        let claimed = claim_all(&db.pool, worker).await;
        for (step, seconds) in [("a", expected), ("b", 0)] {
            let task = of_step(&claimed, step);
            let hidden = delay(&db.pool, task, Failure::default()).await;
            assert!(
                hidden.contains(&seconds),
                "{step}, attempt {}: hidden for {hidden:?} s, not {seconds}",
                task.attempt
            );
        }
        show_all(&db.pool, "f").await;
    }
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn the_delay_is_a_day_at_most() {
    let (db, worker) = database_with(&[step("a").base_delay(i32::MAX)]).await;
    start(&db.pool, "f", json!({})).await;
    let claimed = claim_one(&db.pool, worker).await;
    let hidden = delay(&db.pool, &claimed, Failure::default()).await;
    assert!(hidden.contains(&86_400), "{hidden:?}");

    let cases = [
        (1, 1, 2),
        (7, 3, 56),
        (1, 16, 65_536),
        (2, 16, 86_400),
        (1, 17, 86_400),
        (1, i32::MAX, 86_400),
        (i32::MAX, i32::MAX, 86_400),
        (0, i32::MAX, 0),
    ];
    for (base, attempts, expected) in cases {
        let seconds: i32 = sqlx::query_scalar("select pgflow._retry_delay($1, $2)")
            .bind(base)
            .bind(attempts)
            .fetch_one(&db.pool)
            .await
            .expect("delays can be computed");
        assert_eq!(seconds, expected, "{base} * 2^{attempts}");
    }
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_given_delay_replaces_the_backoff() {
    let (db, worker) = database_with(&[step("a").base_delay(5).max_attempts(9)]).await;
    start(&db.pool, "f", json!({})).await;
    for (given, expected) in [
        ("0", 0),
        ("0.2", 1),
        ("7", 7),
        ("100000", 100_000),
        ("2147483647", i64::from(i32::MAX)),
    ] {
        let claimed = claim_one(&db.pool, worker).await;
        let failure = Failure {
            retry_delay: Some(given),
            ..Failure::default()
        };
        let hidden = delay(&db.pool, &claimed, failure).await;
        assert!(
            hidden.contains(&expected),
            "retry_delay {given}: {hidden:?}"
        );
        show_all(&db.pool, "f").await;
    }
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_delay_that_is_no_length_of_time_is_refused() {
    let (db, worker) = database_with(&[step("a")]).await;
    start(&db.pool, "f", json!({})).await;
    let claimed = claim_one(&db.pool, worker).await;
    let before = everything(&db.pool, "f").await;
    for given in ["-1", "-0.1", "NaN", "Infinity", "-Infinity", "2147483648"] {
        for retryable in [true, false] {
            let failure = Failure {
                retry_delay: Some(given),
                retryable,
                ..Failure::default()
            };
            assert_eq!(
                raised(try_fail(&db.pool, &claimed, failure).await),
                format!(
                    "PF009: retry_delay is {given} seconds; it must be between 0 and 2147483647"
                )
            );
        }
    }
    assert_eq!(everything(&db.pool, "f").await, before);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_given_delay_counts_for_nothing_when_no_attempt_is_left() {
    let (db, worker) = database_with(&[step("a").max_attempts(1)]).await;
    let run_id = start(&db.pool, "f", json!({})).await;
    let claimed = claim_one(&db.pool, worker).await;
    let failure = Failure {
        retry_delay: Some("60"),
        ..Failure::default()
    };
    let rows = try_fail(&db.pool, &claimed, failure).await;
    assert_eq!(rows.expect("accepted"), ["failed"]);
    assert_eq!(shown_delay(&db.pool, &claimed).await, None);
    assert_eq!(run(&db.pool, run_id).await.status, "failed");
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn an_attempt_that_is_not_retryable_exhausts_the_task_at_once() {
    let (db, worker) = database_with(&[step("a").max_attempts(100)]).await;
    let run_id = start(&db.pool, "f", json!({})).await;
    let claimed = claim_one(&db.pool, worker).await;
    assert_eq!(fail_for_good(&db.pool, &claimed, "never").await, "failed");
    assert_eq!(outline(&db.pool, run_id).await, "run failed, a failed");
    assert_eq!(task(&db.pool, run_id, "a").await.attempts_count, 1);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_retry_whose_message_is_gone_exhausts_the_task() {
    for (mode, status) in [
        ("fail", "run failed, a failed"),
        ("skip", "run completed, a skipped: handler_failed"),
    ] {
        let (db, worker) = database_with(&[step("a").when_exhausted(mode)]).await;
        let run_id = start(&db.pool, "f", json!({})).await;
        let claimed = claim_one(&db.pool, worker).await;
        sqlx::query("select pgmq.delete('f', $1)")
            .bind(claimed.message_id)
            .execute(&db.pool)
            .await
            .expect("the message can be deleted");
        assert_eq!(fail(&db.pool, &claimed, "boom").await, "failed");
        assert_eq!(outline(&db.pool, run_id).await, status);
        assert_eq!(
            task(&db.pool, run_id, "a").await.error_message.as_deref(),
            Some("boom (not retried: its message is gone from queue \"f\")")
        );
        assert_invariants(&db.pool).await;
    }
}
