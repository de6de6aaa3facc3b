//! Claims beside claims, failures, skips and completions: a claim waits for nobody.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use sqlx::postgres::PgPool;
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::support::TestDb;
use crate::support::flows::{
    Claimed, claim, claim_one, complete, define, fail, start, step, worker,
};
use crate::support::invariants::assert_invariants;
use crate::support::rows::{archived, messages, run, show_all, step_state, task, tasks};
use crate::support::sessions::{until_blocked, without_waiting};

fn indexes(claimed: &[Claimed]) -> Vec<i32> {
    claimed.iter().map(|task| task.task_index).collect()
}

async fn statuses(pool: &PgPool, run: Uuid, step: &str) -> Vec<String> {
    tasks(pool, run, step)
        .await
        .into_iter()
        .map(|task| task.status)
        .collect()
}

#[tokio::test]
async fn two_claims_at_once_share_the_queue_without_waiting() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("each").map()]).await;
    start(&db.pool, "orders", json!([0, 1, 2, 3, 4])).await;
    let (one, other) = (
        worker(&db.pool, "orders").await,
        worker(&db.pool, "orders").await,
    );
    let mut first = db.pool.begin().await.expect("a first session");
    let firsts = claim(&mut *first, one, 2).await;
    let seconds = without_waiting(claim(&db.pool, other, 10)).await;
    first.commit().await.expect("committed");
    assert_eq!(
        (indexes(&firsts), indexes(&seconds)),
        (vec![0, 1], vec![2, 3, 4])
    );
    assert!(claim(&db.pool, one, 10).await.is_empty());
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_claim_that_is_undone_has_counted_nothing() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("a")]).await;
    start(&db.pool, "orders", json!({})).await;
    let worker = worker(&db.pool, "orders").await;
    let mut first = db.pool.begin().await.expect("a first session");
    assert_eq!(claim(&mut *first, worker, 1).await.len(), 1);
    let second = without_waiting(claim(&db.pool, worker, 1)).await;
    assert!(second.is_empty());
    first.rollback().await.expect("undone");
    let claimed = claim_one(&db.pool, worker).await;
    assert_eq!((claimed.attempt, claimed.read_count), (1, 1));
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn many_claims_at_once_hand_out_every_task_once() {
    const TASKS: usize = 120;
    static CLAIMED: AtomicUsize = AtomicUsize::new(0);
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("each").map()]).await;
    start(&db.pool, "orders", json!((0..TASKS).collect::<Vec<_>>())).await;
    let mut workers = JoinSet::new();
    for batch in 1..=6 {
        let (pool, worker) = (db.pool.clone(), worker(&db.pool, "orders").await);
        workers.spawn(async move {
            let since = Instant::now();
            let mut mine = Vec::new();
            while CLAIMED.load(Ordering::Relaxed) < TASKS {
                assert!(
                    since.elapsed() < Duration::from_secs(30),
                    "tasks are left over"
                );
                let claimed = indexes(&claim(&pool, worker, batch).await);
                CLAIMED.fetch_add(claimed.len(), Ordering::Relaxed);
                mine.extend(claimed);
            }
            mine
        });
    }
    let mut all = workers.join_all().await.concat();
    all.sort_unstable();
    assert_eq!(all, (0..120).collect::<Vec<_>>());
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_claim_gets_nothing_of_a_run_that_is_just_failing() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("a").max_attempts(1), step("b")]).await;
    let id = start(&db.pool, "orders", json!({})).await;
    let worker = worker(&db.pool, "orders").await;
    let culprit = claim_one(&db.pool, worker).await;
    let mut failing = db.pool.begin().await.expect("a first session");
    fail(&mut *failing, &culprit, "no").await;
    let second = without_waiting(claim(&db.pool, worker, 10)).await;
    assert!(second.is_empty());
    failing.commit().await.expect("committed");
    assert!(claim(&db.pool, worker, 10).await.is_empty());
    assert_eq!(statuses(&db.pool, id, "b").await, ["cancelled"]);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_run_that_fails_during_a_claim_cancels_what_it_claimed() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("a").max_attempts(1), step("b")]).await;
    let id = start(&db.pool, "orders", json!({})).await;
    let worker = worker(&db.pool, "orders").await;
    let culprit = claim_one(&db.pool, worker).await;
    let mut claiming = db.pool.begin().await.expect("a first session");
    let claimed = claim_one(&mut *claiming, worker).await;
    let failing = until_blocked(&db.pool, |mut second| async move {
        fail(&mut *second, &culprit, "no").await
    })
    .await;
    claiming.commit().await.expect("committed");
    assert_eq!(failing.await.expect("failed"), "failed");

    let cancelled = task(&db.pool, id, "b").await;
    assert_eq!(
        (cancelled.status.as_str(), cancelled.attempts_count),
        ("cancelled", 1)
    );
    assert_eq!(complete(&db.pool, &claimed, json!(1)).await, "cancelled");
    assert_eq!(run(&db.pool, id).await.status, "failed");
    assert_eq!(archived(&db.pool, "orders").await.len(), 2);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_step_that_is_skipped_during_a_claim_skips_what_it_claimed() {
    let db = TestDb::new().await;
    let each = step("each").map().max_attempts(1).when_exhausted("skip");
    define(&db.pool, "orders", &[each, step("next").deps(&["each"])]).await;
    let id = start(&db.pool, "orders", json!([0, 1, 2])).await;
    let worker = worker(&db.pool, "orders").await;
    let culprit = claim_one(&db.pool, worker).await;
    let mut claiming = db.pool.begin().await.expect("a first session");
    let claimed = claim_one(&mut *claiming, worker).await;
    let failing = until_blocked(&db.pool, |mut second| async move {
        fail(&mut *second, &culprit, "no").await
    })
    .await;
    claiming.commit().await.expect("committed");
    assert_eq!(failing.await.expect("failed"), "failed");

    assert_eq!(
        statuses(&db.pool, id, "each").await,
        ["failed", "skipped", "skipped"]
    );
    assert_eq!(complete(&db.pool, &claimed, json!(1)).await, "skipped");
    assert_eq!(step_state(&db.pool, id, "each").await.status, "skipped");
    assert_eq!(claim_one(&db.pool, worker).await.input, json!({}));
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_claim_gets_nothing_of_a_step_that_is_just_being_skipped() {
    let db = TestDb::new().await;
    let each = step("each").map().max_attempts(1).when_exhausted("skip");
    define(&db.pool, "orders", &[each, step("next").deps(&["each"])]).await;
    let id = start(&db.pool, "orders", json!([0, 1, 2])).await;
    let worker = worker(&db.pool, "orders").await;
    let culprit = claim_one(&db.pool, worker).await;
    let mut skipping = db.pool.begin().await.expect("a first session");
    fail(&mut *skipping, &culprit, "no").await;
    let early = without_waiting(claim(&db.pool, worker, 10)).await;
    assert!(early.is_empty(), "neither an element nor what comes after");
    skipping.commit().await.expect("committed");
    let claimed = claim(&db.pool, worker, 10).await;
    assert_eq!(claimed.len(), 1);
    assert_eq!(claimed[0].step_slug, "next");
    assert_eq!(
        statuses(&db.pool, id, "each").await,
        ["failed", "skipped", "skipped"]
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_claim_does_not_wait_while_a_completion_holds_its_locks() {
    let db = TestDb::new().await;
    let steps = [step("each").map(), step("next").deps(&["each"])];
    define(&db.pool, "orders", &steps).await;
    let id = start(&db.pool, "orders", json!([0, 1])).await;
    let worker = worker(&db.pool, "orders").await;
    let first = claim_one(&db.pool, worker).await;
    show_all(&db.pool, "orders").await;

    let mut completing = db.pool.begin().await.expect("a first session");
    complete(&mut *completing, &first, json!(0)).await;
    let rest = without_waiting(claim(&db.pool, worker, 10)).await;
    assert_eq!(indexes(&rest), [1]);
    completing.commit().await.expect("committed");

    let mut completing = db.pool.begin().await.expect("a first session");
    complete(&mut *completing, &rest[0], json!(1)).await;
    let uncommitted = without_waiting(claim(&db.pool, worker, 10)).await;
    assert!(uncommitted.is_empty());
    completing.commit().await.expect("committed");
    assert_eq!(
        claim_one(&db.pool, worker).await.input,
        json!({"each": [0, 1]})
    );
    assert_eq!(
        statuses(&db.pool, id, "each").await,
        ["completed", "completed"]
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_completion_waits_for_a_claim_that_reads_its_message_again() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("a")]).await;
    let id = start(&db.pool, "orders", json!({})).await;
    let worker = worker(&db.pool, "orders").await;
    let task = claim_one(&db.pool, worker).await;
    show_all(&db.pool, "orders").await;
    let mut reading = db.pool.begin().await.expect("a first session");
    assert!(claim(&mut *reading, worker, 1).await.is_empty());
    let completing = until_blocked(&db.pool, |mut second| async move {
        complete(&mut *second, &task, json!(1)).await
    })
    .await;
    reading.commit().await.expect("committed");
    assert_eq!(completing.await.expect("completed"), "completed");
    assert_eq!(run(&db.pool, id).await.output, Some(json!({"a": 1})));
    assert!(messages(&db.pool, "orders").await.is_empty());
    assert_invariants(&db.pool).await;
}
