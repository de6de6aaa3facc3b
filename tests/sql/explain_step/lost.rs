//! Steps whose workers have fallen silent.

use serde_json::json;

use super::{explain, keep_workers_alive, said};
use crate::support::flows::{claim, start, step, worker};
use crate::support::invariants::assert_invariants;
use crate::support::runs::database_with;

#[tokio::test]
async fn a_step_whose_workers_are_silent_is_not_said_to_run() {
    for (gone, expected) in [
        (
            "last_heartbeat_at = now() - interval '7 seconds'",
            "Its workers have not been heard of for 6 seconds. If they have died, recovery takes its tasks from {overdue_at} on, \
             while a worker of any flow runs.",
        ),
        (
            "stopped_at = now()",
            "Its worker has stopped without giving its work back. Recovery takes it within seconds, while a worker of any flow runs.",
        ),
    ] {
        let (db, first) = database_with(&[step("each").map().timeout(60)]).await;
        let run_id = start(&db.pool, "f", json!([1, 2])).await;
        keep_workers_alive(&db.pool).await;
        claim(&db.pool, first, 1).await;
        assert_eq!(said(&explain(&db.pool, run_id, "each").await).0, "running");

        let change = format!("update pgflow.workers set {gone} where worker_id = $1");
        sqlx::query(sqlx::AssertSqlSafe(change))
            .bind(first)
            .execute(&db.pool)
            .await
            .expect("workers can be changed");
        let explained = explain(&db.pool, run_id, "each").await;
        let overdue_at: String = sqlx::query_scalar(
            "select (last_heartbeat_at + interval '30 seconds')::text from pgflow.workers where worker_id = $1",
        )
        .bind(first)
        .fetch_one(&db.pool)
        .await
        .expect("the worker can be read");
        let message = expected.replace("{overdue_at}", &overdue_at);
        assert_eq!(said(&explained), ("worker_lost", &*message));

        // Another worker is at the other task.
        let second = worker(&db.pool, "f").await;
        keep_workers_alive(&db.pool).await;
        sqlx::query(
            "update pgflow.workers set last_heartbeat_at = now() - interval '7 seconds' where worker_id = $1",
        )
        .bind(first)
        .execute(&db.pool)
        .await
        .expect("workers can be changed");
        claim(&db.pool, second, 1).await;
        assert_eq!(said(&explain(&db.pool, run_id, "each").await).0, "running");
        assert_invariants(&db.pool).await;
    }
}
