//! Options that an operator changes with plain SQL while runs are under way: each applies from the
//! next decision on. `old_plans` has sessions whose statements were planned before.

mod old_plans;

use serde_json::json;
use sqlx::AssertSqlSafe;
use sqlx::postgres::PgPool;

use crate::support::events::{Events, set_event_level};
use crate::support::flows::{Claimed, claim, claim_one, complete, fail, start, step};
use crate::support::invariants::assert_invariants;
use crate::support::rows::{messages, show_all};
use crate::support::runs::{
    age, claim_all, database_with, fail_for_good, hidden_by, is_backoff, of_step, outline, requeue,
    task_statuses, until_recovery_looks,
};

/// Changes options of the one flow.
async fn tune_flow(pool: &PgPool, set: &str) {
    change(pool, format!("update pgflow.flows set {set}")).await;
}

/// Changes options of one step.
async fn tune(pool: &PgPool, step: &str, set: &str) {
    let change_step = format!("update pgflow.steps set {set} where step_slug = '{step}'");
    change(pool, change_step).await;
}

async fn change(pool: &PgPool, sql: String) {
    let changed = sqlx::query(AssertSqlSafe(sql)).execute(pool).await;
    let changed = changed.expect("options can be changed");
    assert_eq!(changed.rows_affected(), 1);
}

/// For how many seconds a claim hid the message of its task, counted from its start.
async fn hidden_by_claim(pool: &PgPool, task: &Claimed) -> i64 {
    let messages = messages(pool, "f").await;
    let message = messages.iter().find(|m| m.id == task.message_id);
    message.expect("it is live").visible_after(task.started_at)
}

#[tokio::test]
async fn attempts_that_are_added_between_two_attempts_are_made() {
    let (db, worker) = database_with(&[step("own").max_attempts(2), step("flows")]).await;
    let run_id = start(&db.pool, "f", json!({})).await;
    for task in claim_all(&db.pool, worker).await {
        assert_eq!(fail(&db.pool, &task, "again").await, "queued");
    }
    tune(&db.pool, "own", "opt_max_attempts = 4").await;
    tune_flow(&db.pool, "opt_max_attempts = 5").await;
    for attempt in 2..=3 {
        let claimed = claim_all(&db.pool, worker).await;
        for (step, max_attempts) in [("own", 4), ("flows", 5)] {
            let task = of_step(&claimed, step);
            assert_eq!((task.attempt, task.max_attempts), (attempt, max_attempts));
            assert_eq!(fail(&db.pool, task, "again").await, "queued");
        }
    }
    let claimed = claim_all(&db.pool, worker).await;
    assert_eq!(
        fail(&db.pool, of_step(&claimed, "flows"), "x").await,
        "queued"
    );
    assert_eq!(
        fail(&db.pool, of_step(&claimed, "own"), "x").await,
        "failed"
    );
    assert_eq!(
        outline(&db.pool, run_id).await,
        "run failed, own failed, flows started"
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn attempts_that_are_taken_away_are_not_made_even_while_one_runs() {
    let (db, worker) = database_with(&[
        step("own").max_attempts(9).when_exhausted("skip"),
        step("flows").when_exhausted("skip"),
    ])
    .await;
    tune_flow(&db.pool, "opt_max_attempts = 9").await;
    start(&db.pool, "f", json!({})).await;
    for _ in 0..2 {
        for task in claim_all(&db.pool, worker).await {
            assert_eq!(fail(&db.pool, &task, "again").await, "queued");
        }
    }
    let third = claim_all(&db.pool, worker).await;
    tune(&db.pool, "own", "opt_max_attempts = 2").await;
    tune_flow(&db.pool, "opt_max_attempts = 2").await;
    for step in ["own", "flows"] {
        let task = of_step(&third, step);
        assert_eq!((task.attempt, task.max_attempts), (3, 9));
        assert_eq!(fail(&db.pool, task, "no").await, "failed", "{step}: 3 of 2");
    }
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_retry_that_waits_is_still_made_when_its_attempts_are_taken_away() {
    let (db, worker) = database_with(&[step("a").max_attempts(3)]).await;
    let run_id = start(&db.pool, "f", json!({})).await;
    fail(&db.pool, &claim_one(&db.pool, worker).await, "again").await;
    tune(&db.pool, "a", "opt_max_attempts = 1").await;
    let second = claim_one(&db.pool, worker).await;
    assert_eq!((second.attempt, second.max_attempts), (2, 1));
    assert_eq!(complete(&db.pool, &second, json!(1)).await, "completed");
    assert_eq!(
        outline(&db.pool, run_id).await,
        "run completed, a completed"
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn the_next_retry_waits_by_the_base_delay_of_its_moment() {
    let (db, worker) = database_with(&[
        step("own").base_delay(100).max_attempts(9),
        step("flows").max_attempts(9),
    ])
    .await;
    start(&db.pool, "f", json!({})).await;
    let mut seen = Vec::new();
    for (own, flows) in [(100, 10), (200, 20), (1, 40)] {
        tune(&db.pool, "own", &format!("opt_base_delay = {own}")).await;
        tune_flow(&db.pool, &format!("opt_base_delay = {flows}")).await;
        let claimed = claim_all(&db.pool, worker).await;
        for (step, base) in [("own", own), ("flows", flows)] {
            let task = of_step(&claimed, step);
            let expected: i64 = base << task.attempt;
            let hidden = hidden_by(
                &db.pool,
                "f",
                task.message_id,
                fail(&db.pool, task, "again"),
            )
            .await;
            assert!(is_backoff(&hidden, expected), "{step}: {hidden:?}");
            seen.push(expected);
        }
        show_all(&db.pool, "f").await;
    }
    assert_eq!(seen, [200, 20, 800, 80, 8, 320]);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_claim_hides_its_message_by_the_timeout_of_its_moment() {
    let (db, worker) = database_with(&[step("own").timeout(10), step("flows")]).await;
    start(&db.pool, "f", json!({})).await;
    for (own, flows) in [(10, 60), (700, 300), (1, 20)] {
        tune(&db.pool, "own", &format!("opt_timeout = {own}")).await;
        tune_flow(&db.pool, &format!("opt_timeout = {flows}")).await;
        let claimed = claim_all(&db.pool, worker).await;
        for (step, timeout) in [("own", own), ("flows", flows)] {
            let task = of_step(&claimed, step);
            assert_eq!(task.timeout, timeout);
            let expected = i64::from(timeout) + 2;
            assert_eq!(hidden_by_claim(&db.pool, task).await, expected, "{step}");
        }
        tune_flow(&db.pool, "opt_max_attempts = 9").await;
        for task in &claimed {
            fail(&db.pool, task, "again").await;
        }
    }
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_started_task_is_recovered_by_the_timeout_of_the_moment() {
    let (db, worker) = database_with(&[step("own").timeout(600), step("flows")]).await;
    let run_id = start(&db.pool, "f", json!({})).await;
    claim_all(&db.pool, worker).await;
    for step in ["own", "flows"] {
        age(&db.pool, run_id, step, 300).await;
    }
    tune_flow(&db.pool, "opt_timeout = 900").await;
    assert_eq!(requeue(&db.pool).await, 0, "both have time");
    tune(&db.pool, "own", "opt_timeout = 5").await;
    until_recovery_looks(&db.pool).await;
    assert_eq!(requeue(&db.pool).await, 1);
    assert_eq!(task_statuses(&db.pool, run_id, "own").await, "queued");
    tune_flow(&db.pool, "opt_timeout = 5").await;
    until_recovery_looks(&db.pool).await;
    assert_eq!(requeue(&db.pool).await, 1);
    assert_eq!(task_statuses(&db.pool, run_id, "flows").await, "queued");
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_message_that_is_read_again_is_hidden_until_the_recovery_of_the_moment() {
    let (db, worker) = database_with(&[step("a").timeout(60)]).await;
    start(&db.pool, "f", json!({})).await;
    let task = claim_one(&db.pool, worker).await;
    tune(&db.pool, "a", "opt_timeout = 300").await;
    show_all(&db.pool, "f").await;
    assert_eq!(claim(&db.pool, worker, 1).await, []);
    assert_eq!(hidden_by_claim(&db.pool, &task).await, 330);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_start_delay_holds_for_steps_that_have_not_started() {
    let (db, worker) = database_with(&[
        step("a"),
        step("started").start_delay(100),
        step("later").deps(&["a"]).start_delay(200),
        step("at_once").deps(&["a"]).start_delay(200),
    ])
    .await;
    let delays = async || {
        let mut delays: Vec<(String, i64)> = messages(&db.pool, "f")
            .await
            .iter()
            .map(|m| {
                (
                    m.body["step_slug"].to_string(),
                    m.visible_after(m.enqueued_at),
                )
            })
            .collect();
        delays.sort();
        delays
    };
    let delay = |step: &str, seconds| (format!("\"{step}\""), seconds);
    start(&db.pool, "f", json!({})).await;
    let task = claim_one(&db.pool, worker).await;
    tune(&db.pool, "started", "opt_start_delay = 7000").await;
    tune(&db.pool, "later", "opt_start_delay = 5000").await;
    tune(&db.pool, "at_once", "opt_start_delay = null").await;
    complete(&db.pool, &task, json!(1)).await;
    assert_eq!(
        delays().await,
        [
            delay("at_once", 0),
            delay("later", 5000),
            delay("started", 100)
        ]
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn when_exhausted_decides_as_it_is_when_the_last_attempt_fails() {
    for (from, to, expected) in [
        (
            "fail",
            "skip",
            "run started, a skipped: handler_failed, b started",
        ),
        (
            "skip",
            "skip-cascade",
            "run completed, a skipped: handler_failed, b skipped: dependency_skipped",
        ),
        ("skip", "fail", "run failed, a failed, b created"),
    ] {
        let (db, worker) =
            database_with(&[step("a").when_exhausted(from), step("b").deps(&["a"])]).await;
        let run_id = start(&db.pool, "f", json!({})).await;
        let task = claim_one(&db.pool, worker).await;
        tune(&db.pool, "a", &format!("when_exhausted = '{to}'")).await;
        fail_for_good(&db.pool, &task, "no").await;
        assert_eq!(outline(&db.pool, run_id).await, expected);
        assert_invariants(&db.pool).await;
    }
}

#[tokio::test]
async fn when_unmet_decides_as_it_is_when_the_step_is_ready() {
    for (from, to, expected) in [
        (
            "fail",
            "skip",
            "run started, a completed, b skipped: condition_unmet, c started",
        ),
        (
            "skip",
            "skip-cascade",
            "run completed, a completed, b skipped: condition_unmet, c skipped: dependency_skipped",
        ),
        (
            "skip",
            "fail",
            "run failed, a completed, b failed, c created",
        ),
    ] {
        let (db, worker) = database_with(&[
            step("a"),
            step("b")
                .deps(&["a"])
                .required(json!({"a": "never"}))
                .when_unmet(from),
            step("c").deps(&["b"]),
        ])
        .await;
        let run_id = start(&db.pool, "f", json!({})).await;
        let task = claim_one(&db.pool, worker).await;
        tune(&db.pool, "b", &format!("when_unmet = '{to}'")).await;
        complete(&db.pool, &task, json!(1)).await;
        assert_eq!(outline(&db.pool, run_id).await, expected);
        assert_invariants(&db.pool).await;
    }
}

#[tokio::test]
async fn the_event_level_holds_from_the_next_event_on() {
    let (db, worker) = database_with(&[step("a"), step("b").deps(&["a"])]).await;
    let mut events = Events::at_level(&db.pool, "off").await;
    start(&db.pool, "f", json!({})).await;
    assert_eq!(events.types(&db.pool).await, "");
    set_event_level(&db.pool, "all").await;
    complete(&db.pool, &claim_one(&db.pool, worker).await, json!(1)).await;
    assert_eq!(
        events.types(&db.pool).await,
        "step:completed a, step:started b"
    );
    set_event_level(&db.pool, "runs").await;
    complete(&db.pool, &claim_one(&db.pool, worker).await, json!(1)).await;
    assert_eq!(events.types(&db.pool).await, "run:completed");
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn values_of_the_flow_never_override_those_of_a_step() {
    let own = step("own").max_attempts(2).base_delay(3).timeout(7);
    let (db, worker) = database_with(&[own, step("flows")]).await;
    tune_flow(
        &db.pool,
        "opt_max_attempts = 50, opt_base_delay = 500, opt_timeout = 5000",
    )
    .await;
    let run_id = start(&db.pool, "f", json!({})).await;
    let claimed = claim_all(&db.pool, worker).await;
    for (step, options, delay) in [("own", (2, 7), 6), ("flows", (50, 5000), 1000)] {
        let task = of_step(&claimed, step);
        assert_eq!((task.max_attempts, task.timeout), options, "{step}");
        let expected = i64::from(options.1) + 2;
        assert_eq!(hidden_by_claim(&db.pool, task).await, expected, "{step}");
        let failing = fail(&db.pool, task, "again");
        let hidden = hidden_by(&db.pool, "f", task.message_id, failing).await;
        assert!(is_backoff(&hidden, delay), "{step}: {hidden:?}");
    }
    show_all(&db.pool, "f").await;
    claim_all(&db.pool, worker).await;
    for step in ["own", "flows"] {
        age(&db.pool, run_id, step, 40).await;
    }
    assert_eq!(requeue(&db.pool).await, 0);
    assert_eq!(
        task_statuses(&db.pool, run_id, "own").await,
        "failed",
        "its own limit is 2, and its own timeout 7 s"
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_step_whose_own_values_are_taken_away_inherits_again() {
    let own = step("own").max_attempts(1).base_delay(3).timeout(7);
    let (db, worker) = database_with(&[own]).await;
    start(&db.pool, "f", json!({})).await;
    let inherit = "opt_max_attempts = null, opt_base_delay = null, opt_timeout = null";
    tune(&db.pool, "own", inherit).await;
    tune_flow(&db.pool, "opt_base_delay = 10, opt_timeout = 50").await;
    let task = claim_one(&db.pool, worker).await;
    assert_eq!((task.max_attempts, task.timeout), (3, 50));
    let failing = fail(&db.pool, &task, "again");
    let hidden = hidden_by(&db.pool, "f", task.message_id, failing).await;
    assert!(is_backoff(&hidden, 20), "{hidden:?}");
    assert_invariants(&db.pool).await;
}
