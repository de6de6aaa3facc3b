//! Two reports about one run: the second waits for the first, then decides by what it finds.

use serde_json::json;
use sqlx::postgres::PgPool;
use uuid::Uuid;

use crate::support::TestDb;
use crate::support::events::Events;
use crate::support::flows::{Claimed, Step, claim, complete, define, fail, start, step, worker};
use crate::support::invariants::assert_invariants;
use crate::support::rows::{messages, run, step_state, task, tasks};
use crate::support::runs::{fail_for_good, outline};
use crate::support::sessions::{holding, until_blocked};

/// A run of these steps with its two roots claimed.
async fn two_claimed(pool: &PgPool, steps: &[Step]) -> (Uuid, Claimed, Claimed) {
    define(pool, "orders", steps).await;
    let id = start(pool, "orders", json!({})).await;
    let worker = worker(pool, "orders").await;
    let claimed: [Claimed; 2] = claim(pool, worker, 2).await.try_into().expect("two roots");
    let [first, second] = claimed;
    (id, first, second)
}

#[tokio::test]
async fn what_completed_before_the_run_fails_stays_completed() {
    let db = TestDb::new().await;
    let steps = [step("a"), step("b").max_attempts(1), step("c").deps(&["a"])];
    let (id, a, b) = two_claimed(&db.pool, &steps).await;
    let mut completing = db.pool.begin().await.expect("a first session");
    complete(&mut *completing, &a, json!(1)).await;
    let failing = until_blocked(&db.pool, |mut second| async move {
        fail(&mut *second, &b, "no").await
    })
    .await;
    completing.commit().await.expect("committed");
    assert_eq!(failing.await.expect("failed"), "failed");
    assert_eq!(step_state(&db.pool, id, "a").await.output, Some(json!(1)));
    assert_eq!(task(&db.pool, id, "c").await.status, "cancelled");
    assert_eq!(run(&db.pool, id).await.status, "failed");
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn what_completes_after_the_run_failed_changes_nothing() {
    let db = TestDb::new().await;
    let steps = [step("a"), step("b").max_attempts(1), step("c").deps(&["a"])];
    let (id, a, b) = two_claimed(&db.pool, &steps).await;
    let mut failing = db.pool.begin().await.expect("a first session");
    fail(&mut *failing, &b, "no").await;
    let completing = until_blocked(&db.pool, |mut second| async move {
        complete(&mut *second, &a, json!(1)).await
    })
    .await;
    failing.commit().await.expect("committed");
    assert_eq!(completing.await.expect("answered"), "cancelled");
    assert_eq!(step_state(&db.pool, id, "c").await.status, "created");
    assert_eq!(run(&db.pool, id).await.remaining_steps, 3);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_failure_that_is_undone_lets_the_completion_through() {
    let db = TestDb::new().await;
    let steps = [step("a"), step("b").max_attempts(1)];
    let (id, a, b) = two_claimed(&db.pool, &steps).await;
    let mut failing = db.pool.begin().await.expect("a first session");
    fail(&mut *failing, &b, "no").await;
    let completing = until_blocked(&db.pool, |mut second| async move {
        complete(&mut *second, &a, json!(1)).await
    })
    .await;
    failing.rollback().await.expect("undone");
    assert_eq!(completing.await.expect("answered"), "completed");
    assert_eq!(run(&db.pool, id).await.remaining_steps, 1);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn two_dependencies_that_complete_at_once_start_their_dependent_once() {
    let db = TestDb::new().await;
    let steps = [step("a"), step("b"), step("join").deps(&["a", "b"])];
    let (id, a, b) = two_claimed(&db.pool, &steps).await;
    let mut first = db.pool.begin().await.expect("a first session");
    complete(&mut *first, &a, json!(1)).await;
    let second = until_blocked(&db.pool, |mut second| async move {
        complete(&mut *second, &b, json!(2)).await
    })
    .await;
    first.commit().await.expect("committed");
    assert_eq!(second.await.expect("completed"), "completed");
    let join = step_state(&db.pool, id, "join").await;
    assert_eq!((join.status.as_str(), join.remaining_deps), ("started", 0));
    assert_eq!(messages(&db.pool, "orders").await.len(), 1);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn two_elements_that_complete_at_once_are_both_counted() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("each").map()]).await;
    let id = start(&db.pool, "orders", json!([0, 1])).await;
    let worker = worker(&db.pool, "orders").await;
    let claimed = claim(&db.pool, worker, 2).await;
    let mut first = db.pool.begin().await.expect("a first session");
    complete(&mut *first, &claimed[1], json!("b")).await;
    let element = claimed[0].clone();
    let second = until_blocked(&db.pool, |mut second| async move {
        complete(&mut *second, &element, json!("a")).await
    })
    .await;
    first.commit().await.expect("committed");
    assert_eq!(second.await.expect("completed"), "completed");
    assert_eq!(
        run(&db.pool, id).await.output,
        Some(json!({"each": ["a", "b"]}))
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn one_attempt_that_is_reported_twice_at_once_counts_once() {
    let db = TestDb::new().await;
    let steps = [step("a"), step("b"), step("next").deps(&["a"])];
    let (id, a, _) = two_claimed(&db.pool, &steps).await;
    let mut first = db.pool.begin().await.expect("a first session");
    complete(&mut *first, &a, json!("first")).await;
    let again = a.clone();
    let completing = until_blocked(&db.pool, |mut second| async move {
        complete(&mut *second, &again, json!("second")).await
    })
    .await;
    let failing = until_blocked(&db.pool, |mut third| async move {
        fail(&mut *third, &a, "third").await
    })
    .await;
    first.commit().await.expect("committed");
    assert_eq!(completing.await.expect("answered"), "completed");
    assert_eq!(failing.await.expect("answered"), "completed");
    assert_eq!(
        step_state(&db.pool, id, "a").await.output,
        Some(json!("first"))
    );
    assert_eq!(run(&db.pool, id).await.remaining_steps, 2);
    assert_eq!(tasks(&db.pool, id, "next").await.len(), 1);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_completion_of_an_attempt_that_is_just_failing_comes_too_late() {
    let db = TestDb::new().await;
    let steps = [step("a").when_exhausted("skip"), step("b")];
    let (id, a, b) = two_claimed(&db.pool, &steps).await;
    for (task, expected) in [(&a, "failed"), (&b, "queued")] {
        let mut failing = db.pool.begin().await.expect("a first session");
        if expected == "failed" {
            fail_for_good(&mut *failing, task, "no").await;
        } else {
            fail(&mut *failing, task, "again").await;
        }
        let late = task.clone();
        let completing = until_blocked(&db.pool, |mut second| async move {
            complete(&mut *second, &late, json!(1)).await
        })
        .await;
        failing.commit().await.expect("committed");
        assert_eq!(completing.await.expect("answered"), expected);
    }
    assert_eq!(
        outline(&db.pool, id).await,
        "run started, a skipped: handler_failed, b started"
    );
    assert_eq!(task(&db.pool, id, "b").await.output, None);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn two_failures_at_once_have_one_culprit_one_time_and_one_event() {
    let db = TestDb::new().await;
    let steps = [step("a").max_attempts(1), step("b").max_attempts(1)];
    let (id, a, b) = two_claimed(&db.pool, &steps).await;
    let mut events = Events::at_level(&db.pool, "all").await;
    let mut first = db.pool.begin().await.expect("a first session");
    fail(&mut *first, &a, "first").await;
    let stamp = "select failed_at::text from pgflow.runs";
    let failed_at: String = sqlx::query_scalar(stamp)
        .fetch_one(&mut *first)
        .await
        .expect("the run has failed");
    let second = until_blocked(&db.pool, |mut second| async move {
        fail(&mut *second, &b, "second").await
    })
    .await;
    first.commit().await.expect("committed");
    assert_eq!(second.await.expect("answered"), "cancelled");
    let run = run(&db.pool, id).await;
    assert_eq!(run.error_message.as_deref(), Some("first"));
    let kept: String = sqlx::query_scalar(stamp)
        .fetch_one(&db.pool)
        .await
        .expect("the run stays failed");
    assert_eq!(kept, failed_at);
    assert_eq!(events.types(&db.pool).await, "step:failed a, run:failed");
    assert_invariants(&db.pool).await;
}

/// Whoever ends a run holds its row and that of the culprit's task when it reaches for the others.
#[tokio::test]
async fn giving_tasks_back_while_their_run_fails_is_no_deadlock() {
    let db = TestDb::new().await;
    let steps = [step("a"), step("b").max_attempts(1)];
    let (id, a, b) = two_claimed(&db.pool, &steps).await;
    let mut failing = holding(&db.pool, "select from pgflow.runs for no key update").await;
    sqlx::query("select from pgflow.step_tasks where step_slug = 'b' for no key update")
        .execute(&mut *failing)
        .await
        .expect("locked");
    let giver = task(&db.pool, id, "a").await.last_worker_id;
    let releasing = until_blocked(&db.pool, |mut second| async move {
        sqlx::query_scalar::<_, i32>(
            "select pgflow.release_tasks($1, array[$2, $2], array['a', 'b'], array[0, 0], array[1, 1])",
        )
        .bind(giver)
        .bind(id)
        .fetch_one(&mut *second)
        .await
    })
    .await;
    assert_eq!(fail(&mut *failing, &b, "no").await, "failed");
    failing.commit().await.expect("committed");
    let released = releasing.await.expect("answered");
    assert_eq!(released.expect("no deadlock"), 0);
    assert_eq!(complete(&db.pool, &a, json!(1)).await, "cancelled");
    assert_invariants(&db.pool).await;
}
