//! The end of the task of a failed or skipped step: no more than its rows show.

use serde_json::json;
use sqlx::{AssertSqlSafe, PgPool};
use uuid::Uuid;

use super::{explain, said, time};
use crate::support::flows::{Step, claim, claim_one, complete, fail, start, step};
use crate::support::invariants::assert_invariants;
use crate::support::runs::{age, claim_all, database_with, fail_for_good, of_step};

async fn change(pool: &PgPool, sql: &str) {
    sqlx::raw_sql(AssertSqlSafe(sql.to_owned()))
        .execute(pool)
        .await
        .expect("rows can be changed");
}

/// Returns the explanation of a failed step after the time.
async fn how(pool: &PgPool, run_id: Uuid, step: &str) -> String {
    let explained = explain(pool, run_id, step).await;
    let at = time(pool, run_id, step, "failed_at").await;
    let start = format!("It failed at {at}, and its run with it: ");
    let (reason, message) = said(&explained);
    assert_eq!(reason, "failed");
    let how = message.strip_prefix(&start);
    how.unwrap_or_else(|| panic!("{message}")).to_owned()
}

/// Fails every attempt of the one step's task, and says what is said then.
async fn all_attempts_fail(step: Step, attempts: usize) -> String {
    let (db, worker) = database_with(&[step]).await;
    let run_id = start(&db.pool, "f", json!({})).await;
    for _ in 0..attempts {
        change(&db.pool, "update pgmq.q_f set vt = clock_timestamp()").await;
        let task = claim_one(&db.pool, worker).await;
        fail(&db.pool, &task, "boom").await;
    }
    let how = how(&db.pool, run_id, "a").await;
    assert_invariants(&db.pool).await;
    how
}

#[tokio::test]
async fn a_failed_step_and_one_whose_run_ended_before_it() {
    let (db, worker) = database_with(&[
        step("culprit"),
        step("cancelled"),
        step("never").deps(&["cancelled"]),
    ])
    .await;
    let run_id = start(&db.pool, "f", json!({})).await;
    let tasks = claim_all(&db.pool, worker).await;
    fail_for_good(&db.pool, of_step(&tasks, "culprit"), "boom").await;

    let explained = explain(&db.pool, run_id, "culprit").await;
    let at = time(&db.pool, run_id, "culprit", "failed_at").await;
    let message = format!(
        "It failed at {at}, and its run with it: its task failed for good at attempt 1 of 3."
    );
    assert_eq!(said(&explained), ("failed", &*message));
    assert_eq!(explained["error_message"], "boom");
    assert_eq!(explained["tasks"], json!({"failed": 1}));

    let explained = explain(&db.pool, run_id, "cancelled").await;
    assert_eq!(
        said(&explained),
        (
            "run_ended",
            "Step \"culprit\" failed the run before this step had ended."
        )
    );
    assert_eq!(explained["status"], "started");
    assert_eq!(explained["tasks"], json!({"cancelled": 1}));
    let explained = explain(&db.pool, run_id, "never").await;
    assert_eq!(
        said(&explained),
        (
            "run_ended",
            "Step \"culprit\" failed the run before this step had started."
        ),
        "rather than that it waits"
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_task_that_used_up_its_attempts() {
    assert_eq!(
        all_attempts_fail(step("a"), 3).await,
        "its task failed at the last of its 3 attempts."
    );
    assert_eq!(
        all_attempts_fail(step("a").max_attempts(1), 1).await,
        "its task failed at its only attempt."
    );
}

#[tokio::test]
async fn a_task_that_no_attempt_follows_though_it_might_have_more() {
    let (db, worker) = database_with(&[step("each").map()]).await;
    let run_id = start(&db.pool, "f", json!([1, 2])).await;
    let tasks = claim(&db.pool, worker, 2).await;
    fail_for_good(&db.pool, &tasks[1], "no such page").await;
    assert_eq!(
        how(&db.pool, run_id, "each").await,
        "its task 1 failed for good at attempt 1 of 3."
    );
    // What was allowed when it failed is not kept.
    change(&db.pool, "update pgflow.flows set opt_max_attempts = 1").await;
    assert_eq!(
        how(&db.pool, run_id, "each").await,
        "its task 1 failed at its only attempt."
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_task_whose_output_is_no_list_did_not_use_up_its_attempts() {
    let (db, worker) = database_with(&[step("list"), step("each").map().deps(&["list"])]).await;
    let run_id = start(&db.pool, "f", json!({})).await;
    let task = claim_one(&db.pool, worker).await;
    complete(&db.pool, &task, json!("no list")).await;
    assert_eq!(
        how(&db.pool, run_id, "list").await,
        "its task failed for good at attempt 1 of 3."
    );
    assert_eq!(
        said(&explain(&db.pool, run_id, "each").await).1,
        "Step \"list\" failed the run before this step had started."
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_task_that_its_workers_lost() {
    let (db, worker) = database_with(&[step("a")]).await;
    let run_id = start(&db.pool, "f", json!({})).await;
    for _ in 0..3 {
        claim_one(&db.pool, worker).await;
        age(&db.pool, run_id, "a", 100).await;
        change(&db.pool, "select pgflow.requeue_stalled_tasks()").await;
    }
    assert_eq!(
        how(&db.pool, run_id, "a").await,
        "its task stalled for good at attempt 3."
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_step_whose_condition_failed_the_run_had_no_task() {
    let (db, worker) = database_with(&[
        step("first"),
        step("only_if")
            .deps(&["first"])
            .required(json!({"first": 1}))
            .when_unmet("fail"),
    ])
    .await;
    let run_id = start(&db.pool, "f", json!({})).await;
    let task = claim_one(&db.pool, worker).await;
    complete(&db.pool, &task, json!(2)).await;
    assert_eq!(
        how(&db.pool, run_id, "only_if").await,
        "its condition was not met."
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn of_two_steps_that_fail_the_run_the_one_that_did_is_named() {
    let (db, worker) = database_with(&[
        step("gone").when_exhausted("skip"),
        step("culprit"),
        step("other"),
    ])
    .await;
    let run_id = start(&db.pool, "f", json!({})).await;
    let tasks = claim_all(&db.pool, worker).await;
    fail_for_good(&db.pool, of_step(&tasks, "gone"), "boom").await;
    fail_for_good(&db.pool, of_step(&tasks, "culprit"), "bang").await;
    fail_for_good(&db.pool, of_step(&tasks, "other"), "too late").await;
    assert_eq!(
        said(&explain(&db.pool, run_id, "other").await).1,
        "Step \"culprit\" failed the run before this step had ended."
    );
    assert_invariants(&db.pool).await;
}
