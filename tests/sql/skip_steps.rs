//! `_skip_steps` by itself: what it counts, what it touches, and that it may be called again. What
//! leads to it is in `skips` and `conditions`.

use serde_json::json;
use sqlx::postgres::PgPool;
use uuid::Uuid;

use crate::support::events::Events;
use crate::support::flows::{claim, claim_one, complete, start, step};
use crate::support::invariants::assert_invariants;
use crate::support::rows::{archived, messages, run, step_state};
use crate::support::runs::{
    claim_all, database_with, everything, fail_for_good, of_step, outline, task_statuses,
};

/// Skips a step and all that depends on it; returns how many that were.
async fn skip(pool: &PgPool, run_id: Uuid, step: &str) -> i32 {
    sqlx::query_scalar(
        "select pgflow._skip_steps($1, $2, 'condition_unmet', 'no', cascade => true)",
    )
    .bind(run_id)
    .bind(step)
    .fetch_one(pool)
    .await
    .expect("steps can be skipped")
}

#[tokio::test]
async fn a_step_that_nothing_depends_on_is_skipped_alone() {
    let (db, _) = database_with(&[step("a"), step("b").deps(&["a"]), step("c")]).await;
    let run_id = start(&db.pool, "f", json!({})).await;
    assert_eq!(skip(&db.pool, run_id, "b").await, 1);
    assert_eq!(
        outline(&db.pool, run_id).await,
        "run started, a started, b skipped: condition_unmet, c started"
    );
    let state = step_state(&db.pool, run_id, "b").await;
    assert_eq!(state.error_message.as_deref(), Some("no"));
    assert_eq!((state.remaining_tasks, state.output), (None, None));
    assert_eq!(run(&db.pool, run_id).await.remaining_steps, 2);
    assert_eq!(messages(&db.pool, "f").await.len(), 2, "of `a` and `c`");
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_cascade_counts_each_step_once_through_all_levels() {
    let (db, _) = database_with(&[
        step("a"),
        step("other"),
        step("b").deps(&["a"]),
        step("c").deps(&["b"]),
        step("d").deps(&["b", "c"]),
        step("mixed").deps(&["d", "other"]),
        step("apart").deps(&["other"]),
    ])
    .await;
    let run_id = start(&db.pool, "f", json!({})).await;
    assert_eq!(skip(&db.pool, run_id, "a").await, 5);
    assert_eq!(
        outline(&db.pool, run_id).await,
        "run started, a skipped: condition_unmet, other started, b skipped: dependency_skipped, \
         c skipped: dependency_skipped, d skipped: dependency_skipped, mixed skipped: dependency_skipped, apart created"
    );
    assert_eq!(run(&db.pool, run_id).await.remaining_steps, 2);
    assert_eq!(
        step_state(&db.pool, run_id, "apart").await.remaining_deps,
        1
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn messages_of_the_skipped_tasks_are_archived_and_those_of_others_stay() {
    let (db, worker) = database_with(&[step("m").map(), step("other")]).await;
    let run_id = start(&db.pool, "f", json!([1, 2, 3])).await;
    let beside = start(&db.pool, "f", json!([1])).await;
    let sent: Vec<i64> = messages(&db.pool, "f").await.iter().map(|m| m.id).collect();
    let claimed = claim(&db.pool, worker, 2).await;
    complete(&db.pool, &claimed[0], json!(1)).await;
    assert_eq!(skip(&db.pool, run_id, "m").await, 1);
    assert_eq!(
        task_statuses(&db.pool, run_id, "m").await,
        "completed, skipped, skipped"
    );
    assert_eq!(archived(&db.pool, "f").await, sent[..3]);
    let live: Vec<i64> = messages(&db.pool, "f").await.iter().map(|m| m.id).collect();
    assert_eq!(live, sent[3..], "`other`, and the run beside it");
    assert_eq!(
        outline(&db.pool, beside).await,
        "run started, m started, other started"
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_step_that_was_skipped_before_is_not_touched_by_a_cascade_over_it() {
    let (db, worker) = database_with(&[
        step("a"),
        step("list"),
        step("m").map().deps(&["list"]).when_exhausted("skip"),
        step("join").deps(&["a", "m"]),
        step("other"),
    ])
    .await;
    let run_id = start(&db.pool, "f", json!({})).await;
    let claimed = claim_all(&db.pool, worker).await;
    complete(&db.pool, of_step(&claimed, "list"), json!([1, 2])).await;
    let element = claim_one(&db.pool, worker).await;
    fail_for_good(&db.pool, &element, "its own error").await;
    // Somebody puts one of its messages back.
    sqlx::query(
        "insert into pgmq.q_f (msg_id, enqueued_at, message, vt) overriding system value
         select msg_id, enqueued_at, message, now() from pgmq.a_f where msg_id = $1",
    )
    .bind(element.message_id)
    .execute(&db.pool)
    .await
    .expect("a message can be copied back");
    let before = step_state(&db.pool, run_id, "m").await;

    assert_eq!(skip(&db.pool, run_id, "a").await, 2, "`a` and `join`");
    assert_eq!(step_state(&db.pool, run_id, "m").await, before);
    let live: Vec<i64> = messages(&db.pool, "f").await.iter().map(|m| m.id).collect();
    assert!(
        live.contains(&element.message_id),
        "a claim will archive it"
    );
    assert_eq!(run(&db.pool, run_id).await.remaining_steps, 1);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_second_call_skips_nothing_and_changes_nothing() {
    let (db, worker) =
        database_with(&[step("a"), step("b").deps(&["a"]), step("c"), step("d")]).await;
    let run_id = start(&db.pool, "f", json!({})).await;
    let claimed = claim_all(&db.pool, worker).await;
    complete(&db.pool, of_step(&claimed, "c"), json!(1)).await;
    assert_eq!(skip(&db.pool, run_id, "a").await, 2);
    let mut events = Events::at_level(&db.pool, "all").await;
    let before = everything(&db.pool, "f").await;
    for ended in ["a", "b", "c"] {
        assert_eq!(skip(&db.pool, run_id, ended).await, 0, "{ended} has ended");
    }
    assert_eq!(everything(&db.pool, "f").await, before);
    assert_eq!(events.types(&db.pool).await, "");
    assert_invariants(&db.pool).await;
}
