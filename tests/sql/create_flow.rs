//! `create_flow`: slugs, options, queues, collisions.

use sqlx::postgres::PgPool;

use crate::support::TestDb;
use crate::support::flows::define;
use crate::support::invariants::assert_invariants;
use crate::support::rows::{count, raised};

async fn create(pool: &PgPool, flow: &str) -> sqlx::Result<String> {
    sqlx::query_scalar("select flow_slug from pgflow.create_flow($1)")
        .bind(flow)
        .fetch_one(pool)
        .await
}

async fn options(pool: &PgPool, call: &'static str) -> (i32, i32, i32) {
    sqlx::query_as(call)
        .fetch_one(pool)
        .await
        .expect("the flow can be created")
}

#[tokio::test]
async fn a_flow_and_its_queue_are_created() {
    let db = TestDb::new().await;
    assert_eq!(
        create(&db.pool, "CrateAudit").await.expect("created"),
        "CrateAudit"
    );
    let queues: Vec<String> = sqlx::query_scalar("select queue_name::text from pgmq.list_queues()")
        .fetch_all(&db.pool)
        .await
        .expect("queues can be listed");
    assert_eq!(queues, ["crateaudit"]);
    assert_invariants(&db.pool).await;
}
