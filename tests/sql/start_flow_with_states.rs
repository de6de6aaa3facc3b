//! `start_flow_with_states`: starts a run, and tells at once what clients would ask for next.

use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::TestDb;
use crate::support::flows::{define, step};
use crate::support::invariants::assert_invariants;

#[tokio::test]
async fn start_flow_with_states_returns_what_get_run_with_states_does() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("a"), step("b").deps(&["a"])]).await;
    let id = Uuid::now_v7();
    for _ in 0..2 {
        let started: Value =
            sqlx::query_scalar("select pgflow.start_flow_with_states('orders', '{}', $1)")
                .bind(id)
                .fetch_one(&db.pool)
                .await
                .expect("started");
        let read: Value = sqlx::query_scalar("select pgflow.get_run_with_states($1)")
            .bind(id)
            .fetch_one(&db.pool)
            .await
            .expect("a run can be read");
        assert_eq!(started["run"]["run_id"], json!(id));
        assert_eq!(started["steps"].as_array().map(Vec::len), Some(2));
        assert_eq!(read, started);
    }
    let fresh: Value = sqlx::query_scalar("select pgflow.start_flow_with_states('orders', '{}')")
        .fetch_one(&db.pool)
        .await
        .expect("started");
    assert_ne!(fresh["run"]["run_id"], json!(id));
    assert_invariants(&db.pool).await;
}
