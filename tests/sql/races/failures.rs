//! A report that waits behind the transaction in which its run fails: the run is not revived, and
//! nobody hears of it twice.

use serde_json::{Value, json};
use sqlx::postgres::PgPool;
use uuid::Uuid;

use crate::support::TestDb;
use crate::support::events::Events;
use crate::support::flows::{Claimed, Step, claim, complete, define, fail, start, step, worker};
use crate::support::invariants::assert_invariants;
use crate::support::rows::{run, task};
use crate::support::runs::fail_for_good;
use crate::support::sessions::until_blocked;

/// A run of two roots, `a` with one attempt and `b`, both claimed.
async fn two_claimed(pool: &PgPool, b: Step) -> (Uuid, Claimed, Claimed) {
    let after = step("after").deps(&["b"]);
    define(pool, "orders", &[step("a").max_attempts(1), b, after]).await;
    let id = start(pool, "orders", json!({})).await;
    let worker = worker(pool, "orders").await;
    let claimed: [Claimed; 2] = claim(pool, worker, 2).await.try_into().expect("two roots");
    let [a, b] = claimed;
    (id, a, b)
}

/// Every column of a run.
async fn all_of(pool: &PgPool, run: Uuid) -> Value {
    sqlx::query_scalar("select to_jsonb(r) from pgflow.runs r where r.run_id = $1")
        .bind(run)
        .fetch_one(pool)
        .await
        .expect("the run can be read")
}

/// The effect of a waiting report once it may proceed.
#[derive(Debug, Clone, Copy)]
enum Report {
    Retry,
    FailForGood,
    Complete,
}

async fn assert_that_it_comes_too_late(b: Step, report: Report) {
    let db = TestDb::new().await;
    let (id, a, b) = two_claimed(&db.pool, b).await;
    let mut events = Events::at_level(&db.pool, "all").await;
    let mut failing = db.pool.begin().await.expect("a first session");
    fail(&mut *failing, &a, "the first").await;
    let failed: Value = sqlx::query_scalar("select to_jsonb(r) from pgflow.runs r")
        .fetch_one(&mut *failing)
        .await
        .expect("the run can be read");
    assert_eq!(failed["status"], "failed");
    let waiting = until_blocked(&db.pool, move |mut second| async move {
        match report {
            Report::Retry => fail(&mut *second, &b, "the second").await,
            Report::FailForGood => fail_for_good(&mut *second, &b, "the second").await,
            Report::Complete => complete(&mut *second, &b, json!([])).await,
        }
    })
    .await;
    failing.commit().await.expect("committed");
    assert_eq!(waiting.await.expect("answered"), "cancelled", "{report:?}");

    assert_eq!(all_of(&db.pool, id).await, failed, "{report:?}");
    let late = task(&db.pool, id, "b").await;
    assert_eq!((late.error_message, late.output), (None, None));
    assert_eq!(
        events.types(&db.pool).await,
        "step:failed a, run:failed",
        "{report:?}"
    );
    assert_eq!(run(&db.pool, id).await.remaining_steps, 3);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_retry_that_waits_behind_the_failure_of_its_run_does_not_revive_it() {
    assert_that_it_comes_too_late(step("b").max_attempts(5), Report::Retry).await;
}

#[tokio::test]
async fn a_failure_that_waits_behind_the_failure_of_its_run_is_not_told() {
    for mode in ["fail", "skip", "skip-cascade"] {
        let b = step("b").when_exhausted(mode);
        assert_that_it_comes_too_late(b, Report::FailForGood).await;
    }
}

#[tokio::test]
async fn a_completion_that_waits_behind_the_failure_of_its_run_starts_nothing() {
    assert_that_it_comes_too_late(step("b"), Report::Complete).await;
}
