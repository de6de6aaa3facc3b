//! Retries of `fail_task`: how many, and after which delay.

use std::ops::RangeInclusive;
use std::time::Duration;

use serde_json::json;
use sqlx::PgPool;
use sqlx::types::chrono::{DateTime, Utc};

use crate::support::TestDb;
use crate::support::flows::{Claimed, claim, claim_one, complete, fail, start, step};
use crate::support::invariants::assert_invariants;
use crate::support::rows::{archived, raised, run, show_all, step_state, task};
use crate::support::runs::{
    Failure, claim_all, database_with, everything, fail_for_good, hidden_by, is_backoff, of_step,
    outline, task_statuses, try_fail,
};

/// Fails an attempt; returns for how many seconds that hid its message, which the task's row must
/// say as well.
async fn delay(pool: &PgPool, task: &Claimed, failure: Failure<'_>) -> RangeInclusive<i64> {
    let hidden = hidden_by(pool, "f", task.message_id, async {
        let rows = try_fail(pool, task, failure).await;
        assert_eq!(rows.expect("accepted"), ["queued"]);
    })
    .await;
    let shown = shown_delay(pool, task).await.map(i64::from);
    // The nearest whole number of seconds.
    let (from, to) = (*hidden.start(), *hidden.end());
    assert!(
        shown.is_some_and(|shown| (from.min(to)..=from.max(to)).contains(&shown)),
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
                is_backoff(&hidden, seconds),
                "{step}, attempt {}: hidden for {hidden:?} s, not {seconds} and up to a quarter more",
                task.attempt
            );
        }
        show_all(&db.pool, "f").await;
    }
    assert_invariants(&db.pool).await;
}

/// In seconds, of an attempt that many have failed before.
async fn backoffs(pool: &PgPool, base_delay: i32, failures: i32, max_delay: i32) -> Vec<f64> {
    sqlx::query_scalar(
        "select extract(epoch from pgflow._backoff($1, $2, $3))::float8 from generate_series(1, 300)",
    )
    .bind(base_delay)
    .bind(failures)
    .bind(max_delay)
    .fetch_all(pool)
    .await
    .expect("delays can be computed")
}

#[tokio::test]
async fn the_delay_is_never_above_its_cap_and_spread_below_it() {
    let db = TestDb::new().await;
    let cases = [
        ((5, 1, 3600), (10.0, 12.5)),
        ((1, 2, 3600), (4.0, 5.0)),
        ((5, 3, 45), (40.0, 45.0)),
        ((5, 3, 40), (32.0, 40.0)),
        ((5, 30, 3600), (2880.0, 3600.0)),
        ((1, i32::MAX, 86_400), (69_120.0, 86_400.0)),
        ((i32::MAX, i32::MAX, i32::MAX), (1.7e9, 2_147_483_647.0)),
        ((i32::MAX, 1, 1), (0.8, 1.0)),
    ];
    for ((base, failures, cap), (least, most)) in cases {
        let delays = backoffs(&db.pool, base, failures, cap).await;
        let outside = delays.iter().find(|delay| !(least..=most).contains(*delay));
        assert_eq!(outside, None, "{base} * 2^{failures}, {cap} at most");
        let tenth = |n: f64| {
            let (from, to) = (
                least + (most - least) * n,
                least + (most - least) * (n + 0.1),
            );
            delays.iter().any(|delay| (from..=to).contains(delay))
        };
        for n in 0..10 {
            assert!(
                tenth(f64::from(n) / 10.0),
                "{base} * 2^{failures}: tenth {n}"
            );
        }
    }
    assert_eq!(backoffs(&db.pool, 0, 5, 3600).await, [0.0; 300]);
}

#[tokio::test]
async fn tasks_that_failed_together_do_not_come_back_together() {
    let (db, worker) = database_with(&[step("m").map().base_delay(1).max_attempts(9)]).await;
    let elements: Vec<i32> = (0..300).collect();
    start(&db.pool, "f", json!(elements)).await;
    // The third is beyond the cap: that is no meeting point.
    sqlx::query("select pgflow.tune_flow('f', 'm', max_delay => 6)")
        .execute(&db.pool)
        .await
        .expect("tuned");
    for (least, most) in [(2.0, 2.5), (4.0, 5.0), (4.8, 6.0)] {
        for task in claim_all(&db.pool, worker).await {
            fail(&db.pool, &task, "all at once").await;
        }
        // After the report that made each: the tasks were failed one after the other.
        let at_once: i64 = sqlx::query_scalar(
            "select max(n) from (
                 select count(*) as n from pgmq.q_f group by floor(extract(epoch from vt) * 20)
             ) each",
        )
        .fetch_one(&db.pool)
        .await
        .expect("the queue can be read");
        assert!(at_once < 150, "{at_once} of 300 within 50 ms");
        let shown: (i32, i32) =
            sqlx::query_as("select min(retry_delay), max(retry_delay) from pgflow.step_tasks")
                .fetch_one(&db.pool)
                .await
                .expect("the tasks can be read");
        assert!(
            f64::from(shown.0) >= least && f64::from(shown.1) <= f64::ceil(most),
            "{shown:?} s"
        );
        show_all(&db.pool, "f").await;
    }
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn the_cap_is_the_steps_else_the_flows() {
    let (db, worker) = database_with(&[
        step("own").base_delay(100).max_delay(2),
        step("flows").base_delay(100_000),
    ])
    .await;
    start(&db.pool, "f", json!({})).await;
    for task in claim_all(&db.pool, worker).await {
        let hidden = delay(&db.pool, &task, Failure::default()).await;
        let (least, most) = match &*task.step_slug {
            "own" => (1, 2),
            _ => (2880, 3600),
        };
        assert!(
            *hidden.end() >= least && *hidden.start() <= most,
            "{}: {hidden:?}",
            task.step_slug
        );
    }
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_given_delay_replaces_the_backoff() {
    let (db, worker) = database_with(&[step("a").base_delay(5).max_attempts(9)]).await;
    start(&db.pool, "f", json!({})).await;
    for (given, expected) in [
        ("0", 0),
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
async fn a_given_delay_is_kept_to_the_fraction_and_above_the_cap() {
    let (db, worker) = database_with(&[step("a").max_delay(1).max_attempts(9)]).await;
    start(&db.pool, "f", json!({})).await;
    for (given, shown) in [("0.25", 0), ("1.5", 2), ("7.75", 8)] {
        let claimed = claim_one(&db.pool, worker).await;
        let before = Utc::now();
        let failure = Failure {
            retry_delay: Some(given),
            ..Failure::default()
        };
        try_fail(&db.pool, &claimed, failure).await.expect("failed");
        let until: DateTime<Utc> = sqlx::query_scalar("select vt from pgmq.q_f")
            .fetch_one(&db.pool)
            .await
            .expect("its message is in the queue");
        let least = before + Duration::from_secs_f64(given.parse().expect("a number"));
        assert!(
            until >= least && until <= Utc::now() + (least - before),
            "{given}: {until}"
        );
        assert_eq!(shown_delay(&db.pool, &claimed).await, Some(shown));
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
