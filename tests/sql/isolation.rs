//! Callers whose transactions see one state of the database all along: none goes on with what is no longer true.

use serde_json::{Value, json};
use sqlx::postgres::PgPool;
use sqlx::{AssertSqlSafe, PgTransaction};

use crate::sql::stored::unchanged;
use crate::support::TestDb;
use crate::support::flows::{define, shape, start, step};
use crate::support::invariants::assert_invariants;
use crate::support::rows::raised;

const LEVELS: [&str; 2] = ["repeatable read", "serializable"];

/// A transaction that has looked at the database already.
async fn looking(pool: &PgPool, level: &str) -> PgTransaction<'static> {
    let begin = AssertSqlSafe(format!("begin transaction isolation level {level}"));
    let mut transaction = pool.begin_with(begin).await.expect("a session");
    sqlx::query("select from pgflow.flows")
        .execute(&mut *transaction)
        .await
        .expect("flows can be read");
    transaction
}

#[tokio::test]
async fn definitions_are_neither_written_nor_compared() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("a")]).await;
    let calls = [
        "select pgflow.create_flow('other')",
        "select pgflow.add_step('orders', 'b')",
        "select pgflow.ensure_flow_compiled('orders', $1)",
        "select pgflow.delete_flow_and_data('orders')",
    ];
    for level in LEVELS {
        for call in calls {
            let mut session = looking(&db.pool, level).await;
            let mut query = sqlx::query(call);
            if call.contains("$1") {
                query = query.bind(shape(&[step("a")]));
            }
            assert_eq!(
                raised(unchanged(&db.pool, query.execute(&mut *session)).await),
                format!(
                    "PF011: a definition can not be written or compared in a transaction of isolation level {level}"
                ),
                "{call}"
            );
        }
    }
}

#[tokio::test]
async fn a_run_does_not_start_without_a_step_that_was_added_meanwhile() {
    for level in LEVELS {
        let db = TestDb::new().await;
        define(&db.pool, "orders", &[step("a")]).await;
        let mut starting = looking(&db.pool, level).await;
        step("b").add(&db.pool, "orders").await.expect("added");
        let started: sqlx::Result<Value> =
            sqlx::query_scalar("select to_jsonb(r) from pgflow.start_flow('orders', '{}') r")
                .fetch_one(&mut *starting)
                .await;
        assert_eq!(
            raised(started),
            "40001: could not serialize access due to concurrent update",
            "{level}"
        );
        starting.rollback().await.expect("given up");
        start(&db.pool, "orders", json!({})).await;
        assert_invariants(&db.pool).await;
    }
}
