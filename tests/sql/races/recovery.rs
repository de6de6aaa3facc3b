//! Recovery of stalled tasks beside what their workers still do: it waits for nobody, and whoever
//! waits for it comes too late.

use serde_json::json;
use sqlx::postgres::{PgExecutor, PgPool};
use uuid::Uuid;

use crate::support::TestDb;
use crate::support::flows::{Claimed, Step, claim, claim_one, complete, fail, start, step, worker};
use crate::support::invariants::assert_invariants;
use crate::support::rows::{archived, messages, run, show_all, task};
use crate::support::runs::{
    age, database_with, fail_for_good, outline, requeue, until_recovery_looks,
};
use crate::support::sessions::{until_blocked, without_waiting};

/// A run of the flow `f` with its one task stalled, the worker that claimed it, and what that
/// worker was given.
struct Stalled {
    db: TestDb,
    run: Uuid,
    worker: Uuid,
    task: Claimed,
}

impl Stalled {
    async fn new(step: Step) -> Self {
        let (db, worker) = database_with(&[step]).await;
        let run = start(&db.pool, "f", json!({})).await;
        let task = claim_one(&db.pool, worker).await;
        age(&db.pool, run, "a", 3600).await;
        Self {
            db,
            run,
            worker,
            task,
        }
    }

    fn pool(&self) -> &PgPool {
        &self.db.pool
    }

    /// Status, attempts and requeues of the task.
    async fn counts(&self) -> (String, i32, i32) {
        sqlx::query_as("select status, attempts_count, requeued_count from pgflow.step_tasks")
            .fetch_one(self.pool())
            .await
            .expect("the task can be read")
    }
}

async fn release(db: impl PgExecutor<'_>, worker: Uuid, task: &Claimed) -> i32 {
    sqlx::query_scalar(
        "select pgflow.release_tasks(worker_id => $1, run_ids => array[$2], step_slugs => array[$3], task_indexes => array[$4],
            attempts => array[$5])",
    )
    .bind(worker)
    .bind(task.run_id)
    .bind(&task.step_slug)
    .bind(task.task_index)
    .bind(task.attempt)
    .fetch_one(db)
    .await
    .expect("released, or nothing to release")
}

fn counts(status: &str, attempts: i32, requeues: i32) -> (String, i32, i32) {
    (status.to_owned(), attempts, requeues)
}

#[tokio::test]
async fn a_completion_under_way_is_not_recovered() {
    let case = Stalled::new(step("a")).await;
    let mut completing = case.pool().begin().await.expect("a first session");
    complete(&mut *completing, &case.task, json!(1)).await;
    assert_eq!(without_waiting(requeue(case.pool())).await, 0);
    completing.commit().await.expect("committed");
    assert_eq!(requeue(case.pool()).await, 0);
    assert_eq!(case.counts().await, counts("completed", 1, 0));
    assert_eq!(run(case.pool(), case.run).await.status, "completed");
    assert_invariants(case.pool()).await;
}

#[tokio::test]
async fn a_completion_that_is_undone_leaves_its_task_to_the_next_recovery() {
    let case = Stalled::new(step("a")).await;
    let mut completing = case.pool().begin().await.expect("a first session");
    complete(&mut *completing, &case.task, json!(1)).await;
    assert_eq!(without_waiting(requeue(case.pool())).await, 0);
    completing.rollback().await.expect("undone");
    until_recovery_looks(case.pool()).await;
    assert_eq!(requeue(case.pool()).await, 1);
    assert_eq!(case.counts().await, counts("queued", 1, 1));
    assert_invariants(case.pool()).await;
}

#[tokio::test]
async fn a_completion_that_waited_for_recovery_comes_too_late() {
    let case = Stalled::new(step("a")).await;
    let mut recovering = case.pool().begin().await.expect("a first session");
    assert_eq!(requeue(&mut *recovering).await, 1);
    let late = case.task.clone();
    let completing = until_blocked(case.pool(), |mut second| async move {
        complete(&mut *second, &late, json!(1)).await
    })
    .await;
    recovering.commit().await.expect("committed");
    assert_eq!(completing.await.expect("answered"), "queued");
    assert_eq!(case.counts().await, counts("queued", 1, 1));
    assert_invariants(case.pool()).await;
}

#[tokio::test]
async fn a_completion_that_waited_while_recovery_gave_its_task_up_comes_too_late() {
    let case = Stalled::new(step("a").max_attempts(1)).await;
    let mut recovering = case.pool().begin().await.expect("a first session");
    assert_eq!(requeue(&mut *recovering).await, 0);
    let late = case.task.clone();
    let completing = until_blocked(case.pool(), |mut second| async move {
        complete(&mut *second, &late, json!(1)).await
    })
    .await;
    recovering.commit().await.expect("committed");
    assert_eq!(completing.await.expect("answered"), "failed");
    assert_eq!(outline(case.pool(), case.run).await, "run failed, a failed");
    assert_invariants(case.pool()).await;
}

#[tokio::test]
async fn a_failure_under_way_is_not_recovered_and_its_retry_is_not_hurried() {
    let case = Stalled::new(step("a").base_delay(600)).await;
    let mut failing = case.pool().begin().await.expect("a first session");
    fail(&mut *failing, &case.task, "again").await;
    assert_eq!(without_waiting(requeue(case.pool())).await, 0);
    failing.commit().await.expect("committed");
    assert_eq!(requeue(case.pool()).await, 0);
    assert_eq!(case.counts().await, counts("queued", 1, 0));
    assert!(messages(case.pool(), "f").await[0].hidden_for > 600);
    assert_invariants(case.pool()).await;
}

#[tokio::test]
async fn a_failure_that_waited_for_recovery_neither_ends_nor_delays_the_task() {
    for retryable in [true, false] {
        let case = Stalled::new(step("a").base_delay(600)).await;
        let mut recovering = case.pool().begin().await.expect("a first session");
        assert_eq!(requeue(&mut *recovering).await, 1);
        let late = case.task.clone();
        let failing = until_blocked(case.pool(), move |mut second| async move {
            if retryable {
                fail(&mut *second, &late, "late").await
            } else {
                fail_for_good(&mut *second, &late, "late").await
            }
        })
        .await;
        recovering.commit().await.expect("committed");
        assert_eq!(failing.await.expect("answered"), "queued");
        assert_eq!(case.counts().await, counts("queued", 1, 1));
        assert_eq!(task(case.pool(), case.run, "a").await.error_message, None);
        assert_eq!(messages(case.pool(), "f").await[0].hidden_for, 0);
        assert_invariants(case.pool()).await;
    }
}

#[tokio::test]
async fn a_failure_that_ends_the_run_is_not_recovered() {
    let case = Stalled::new(step("a")).await;
    let mut failing = case.pool().begin().await.expect("a first session");
    fail_for_good(&mut *failing, &case.task, "no").await;
    assert_eq!(without_waiting(requeue(case.pool())).await, 0);
    failing.commit().await.expect("committed");
    assert_eq!(requeue(case.pool()).await, 0);
    assert_eq!(case.counts().await, counts("failed", 1, 0));
    assert_eq!(archived(case.pool(), "f").await, [case.task.message_id]);
    assert_invariants(case.pool()).await;
}

#[tokio::test]
async fn a_task_that_is_just_given_back_is_not_recovered() {
    let case = Stalled::new(step("a")).await;
    let mut releasing = case.pool().begin().await.expect("a first session");
    assert_eq!(release(&mut *releasing, case.worker, &case.task).await, 1);
    assert_eq!(without_waiting(requeue(case.pool())).await, 0);
    releasing.commit().await.expect("committed");
    assert_eq!(requeue(case.pool()).await, 0);
    assert_eq!(case.counts().await, counts("queued", 1, 0));
    assert_eq!(claim_one(case.pool(), case.worker).await.attempt, 2);
    assert_invariants(case.pool()).await;
}

#[tokio::test]
async fn a_release_that_waited_for_recovery_gives_nothing_back() {
    let case = Stalled::new(step("a")).await;
    let mut recovering = case.pool().begin().await.expect("a first session");
    assert_eq!(requeue(&mut *recovering).await, 1);
    let (worker, late) = (case.worker, case.task.clone());
    let releasing = until_blocked(case.pool(), move |mut second| async move {
        release(&mut *second, worker, &late).await
    })
    .await;
    recovering.commit().await.expect("committed");
    assert_eq!(releasing.await.expect("answered"), 0);
    assert_eq!(
        case.counts().await,
        counts("queued", 1, 1),
        "the attempt of the dead worker stays counted"
    );
    assert_eq!(claim_one(case.pool(), case.worker).await.attempt, 2);
    assert_invariants(case.pool()).await;
}

#[tokio::test]
async fn a_late_release_never_takes_the_next_attempt_whoever_makes_it() {
    for is_same_worker in [true, false] {
        let case = Stalled::new(step("a")).await;
        assert_eq!(requeue(case.pool()).await, 1);
        let next = if is_same_worker {
            case.worker
        } else {
            worker(case.pool(), "f").await
        };
        let mut claiming = case.pool().begin().await.expect("a first session");
        assert_eq!(claim_one(&mut *claiming, next).await.attempt, 2);
        let late = without_waiting(release(case.pool(), case.worker, &case.task)).await;
        assert_eq!(late, 0, "while the next attempt is claimed");
        claiming.commit().await.expect("committed");
        assert_eq!(release(case.pool(), case.worker, &case.task).await, 0);
        assert_eq!(case.counts().await, counts("started", 2, 1));
        assert_invariants(case.pool()).await;
    }
}

#[tokio::test]
async fn a_task_that_is_just_given_back_is_claimed_after_that_and_not_before() {
    let case = Stalled::new(step("a")).await;
    let next = worker(case.pool(), "f").await;
    show_all(case.pool(), "f").await;
    let mut releasing = case.pool().begin().await.expect("a first session");
    assert_eq!(release(&mut *releasing, case.worker, &case.task).await, 1);
    let early = without_waiting(claim(case.pool(), next, 1)).await;
    assert!(early.is_empty());
    releasing.commit().await.expect("committed");
    assert_eq!(claim_one(case.pool(), next).await.attempt, 2);
    assert_eq!(case.counts().await, counts("started", 2, 0));
    assert_invariants(case.pool()).await;
}

#[tokio::test]
async fn a_release_waits_for_a_claim_that_reads_its_message_again() {
    let case = Stalled::new(step("a")).await;
    let other = worker(case.pool(), "f").await;
    show_all(case.pool(), "f").await;
    let mut reading = case.pool().begin().await.expect("a first session");
    assert!(claim(&mut *reading, other, 1).await.is_empty());
    let (owner, mine) = (case.worker, case.task.clone());
    let releasing = until_blocked(case.pool(), move |mut second| async move {
        release(&mut *second, owner, &mine).await
    })
    .await;
    reading.commit().await.expect("committed");
    assert_eq!(releasing.await.expect("answered"), 1);
    assert_eq!(case.counts().await, counts("queued", 1, 0));
    assert_eq!(messages(case.pool(), "f").await[0].hidden_for, 0);
    assert_invariants(case.pool()).await;
}

#[tokio::test]
async fn a_task_whose_message_is_being_read_again_is_left_to_the_next_recovery() {
    let case = Stalled::new(step("a")).await;
    let other = worker(case.pool(), "f").await;
    show_all(case.pool(), "f").await;
    let mut reading = case.pool().begin().await.expect("a first session");
    assert!(claim(&mut *reading, other, 1).await.is_empty());
    assert_eq!(without_waiting(requeue(case.pool())).await, 0);
    reading.commit().await.expect("committed");
    until_recovery_looks(case.pool()).await;
    assert_eq!(requeue(case.pool()).await, 1);
    assert_eq!(messages(case.pool(), "f").await[0].hidden_for, 0);
    assert_eq!(claim_one(case.pool(), other).await.attempt, 2);
    assert_invariants(case.pool()).await;
}

#[tokio::test]
async fn a_task_that_is_just_recovered_is_claimed_after_that_and_not_before() {
    let case = Stalled::new(step("a")).await;
    let other = worker(case.pool(), "f").await;
    show_all(case.pool(), "f").await;
    let mut recovering = case.pool().begin().await.expect("a first session");
    assert_eq!(requeue(&mut *recovering).await, 1);
    let early = without_waiting(claim(case.pool(), other, 1)).await;
    assert!(early.is_empty());
    recovering.commit().await.expect("committed");
    assert_eq!(claim_one(case.pool(), other).await.attempt, 2);
    assert_eq!(case.counts().await, counts("started", 2, 1));
    assert_invariants(case.pool()).await;
}
