//! `release_lost_claims`: what a worker has claimed without knowing.

use serde_json::json;
use sqlx::postgres::PgPool;
use sqlx::types::chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::support::flows::{claim_one, complete, start, step, worker};
use crate::support::invariants::assert_invariants;
use crate::support::runs::{database_with, task_statuses};

async fn release(
    pool: &PgPool,
    worker: Uuid,
    after: Option<DateTime<Utc>>,
    answered: &[DateTime<Utc>],
) -> i32 {
    sqlx::query_scalar("select pgflow.release_lost_claims($1, $2, $3)")
        .bind(worker)
        .bind(after)
        .bind(answered)
        .fetch_one(pool)
        .await
        .expect("claims can be given back")
}

#[tokio::test]
async fn the_tasks_of_claims_without_an_answer_go_back_uncounted_and_no_others() {
    let (db, owner) = database_with(&[step("a")]).await;
    let other = worker(&db.pool, "f").await;
    let mut runs = Vec::new();
    let mut claimed = Vec::new();
    for claimer in [owner, owner, other, owner, owner] {
        runs.push(start(&db.pool, "f", json!({})).await);
        claimed.push(claim_one(&db.pool, claimer).await);
    }
    // One of the lost ones was reported anyway.
    complete(&db.pool, &claimed[3], json!(1)).await;
    let (after, answered) = (claimed[0].started_at, [claimed[4].started_at]);
    assert_eq!(release(&db.pool, owner, Some(after), &answered).await, 1);
    assert_eq!(release(&db.pool, owner, Some(after), &answered).await, 0);
    let mut statuses = Vec::new();
    for &run in &runs {
        statuses.push(task_statuses(&db.pool, run, "a").await);
    }
    assert_eq!(
        statuses,
        ["started", "queued", "started", "completed", "started"]
    );
    let again = claim_one(&db.pool, other).await;
    assert_eq!(
        (again.run_id, again.attempt, again.max_attempts),
        (runs[1], 2, 4)
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_worker_that_never_got_an_answer_gives_back_all() {
    let (db, owner) = database_with(&[step("a")]).await;
    let run = start(&db.pool, "f", json!({})).await;
    claim_one(&db.pool, owner).await;
    assert_eq!(release(&db.pool, owner, None, &[]).await, 1);
    assert_eq!(task_statuses(&db.pool, run, "a").await, "queued");
    assert_invariants(&db.pool).await;
}
