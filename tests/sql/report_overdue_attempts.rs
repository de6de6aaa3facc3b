//! `report_overdue_attempts`; `recover_tasks` has what follows from it.

use serde_json::json;
use sqlx::postgres::PgPool;
use uuid::Uuid;

use crate::support::flows::{claim_one, start, step, worker};
use crate::support::rows::{count, raised};
use crate::support::runs::database_with;

async fn report(pool: &PgPool, worker: Uuid, run: Uuid, attempt: i32) {
    sqlx::query("select pgflow.report_overdue_attempts($1, array[$2, $2], array['a', 'a'], array[0, 0], array[$3, $3])")
        .bind(worker)
        .bind(run)
        .bind(attempt)
        .execute(pool)
        .await
        .expect("it can be reported, also twice in one call");
}

#[tokio::test]
async fn only_the_current_attempt_of_this_worker_is_noted_and_old_reports_go() {
    let (db, owner) = database_with(&[step("a")]).await;
    let other = worker(&db.pool, "f").await;
    let run = start(&db.pool, "f", json!({})).await;
    claim_one(&db.pool, owner).await;
    let noted = "pgflow.overdue_attempts";
    for (worker, attempt, expected) in [(other, 1, 0), (owner, 2, 0), (owner, 1, 1)] {
        report(&db.pool, worker, run, attempt).await;
        assert_eq!(count(&db.pool, noted).await, expected);
    }
    sqlx::query("update pgflow.overdue_attempts set reported_at = now() - interval '11 minutes'")
        .execute(&db.pool)
        .await
        .expect("reports can be changed");
    report(&db.pool, other, run, 1).await;
    assert_eq!(count(&db.pool, noted).await, 0);
}

#[tokio::test]
async fn arrays_of_different_lengths_are_refused() {
    let (db, owner) = database_with(&[step("a")]).await;
    let refused = sqlx::query(
        "select pgflow.report_overdue_attempts($1, array[$1], array['a'], array[0], '{}')",
    )
    .bind(owner)
    .execute(&db.pool)
    .await;
    assert!(raised(refused).starts_with("PF009"));
}
