//! Callers whose transactions see one state of the database all along: none continues with what is
//! no longer true.

use serde_json::{Value, json};
use sqlx::postgres::PgPool;
use sqlx::{AssertSqlSafe, PgTransaction};
use uuid::Uuid;

use crate::sql::start_flows::{start_many, start_many_as, try_start_many};
use crate::sql::stored::unchanged;
use crate::support::TestDb;
use crate::support::flows::{claim_one, complete, define, shape, start, step, worker};
use crate::support::invariants::assert_invariants;
use crate::support::rows::{count, messages, raised};

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
async fn the_result_of_a_claim_that_is_not_seen_is_refused_and_never_dropped() {
    for level in LEVELS {
        let db = TestDb::new().await;
        define(&db.pool, "orders", &[step("a")]).await;
        start(&db.pool, "orders", json!({})).await;
        let mut completing = looking(&db.pool, level).await;
        let worker = worker(&db.pool, "orders").await;
        let claimed = claim_one(&db.pool, worker).await;
        let completed: sqlx::Result<String> = sqlx::query_scalar(
            "select outcome from pgflow.complete_tasks(array[$1], '{a}', '{0}', '{1}', array['1'::jsonb])",
        )
        .bind(claimed.run_id)
        .fetch_one(&mut *completing)
        .await;
        assert_eq!(
            raised(completed),
            "40001: could not serialize access due to concurrent update",
            "{level}"
        );
        drop(completing);
        assert_eq!(complete(&db.pool, &claimed, json!(1)).await, "completed");
        assert_invariants(&db.pool).await;
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

#[tokio::test]
async fn no_run_starts_of_a_flow_whose_deletion_has_begun_meanwhile() {
    for level in LEVELS {
        let db = TestDb::new().await;
        define(&db.pool, "orders", &[step("a")]).await;
        start(&db.pool, "orders", json!({})).await;
        let mut starting = looking(&db.pool, level).await;
        sqlx::query("select from pgflow.delete_flow_batch('orders')")
            .execute(&db.pool)
            .await
            .expect("marked");
        let started = try_start_many(&mut *starting, "orders", &[Some(json!(1))], None).await;
        assert_eq!(
            raised(started),
            "40001: could not serialize access due to concurrent update",
            "{level}"
        );
        starting.rollback().await.expect("given up");
        assert_eq!(count(&db.pool, "pgflow.runs").await, 1);
    }
}

#[tokio::test]
async fn many_runs_do_not_start_without_a_step_that_was_added_meanwhile() {
    for level in LEVELS {
        let db = TestDb::new().await;
        define(&db.pool, "orders", &[step("a")]).await;
        let mut starting = looking(&db.pool, level).await;
        step("b").add(&db.pool, "orders").await.expect("added");
        let inputs = [Some(json!(1)), Some(json!(2))];
        let started = try_start_many(&mut *starting, "orders", &inputs, None).await;
        assert_eq!(
            raised(started),
            "40001: could not serialize access due to concurrent update",
            "{level}"
        );
        starting.rollback().await.expect("given up");
        assert_eq!(count(&db.pool, "pgflow.runs").await, 0);
    }
}

#[tokio::test]
async fn a_run_that_was_started_meanwhile_is_neither_missed_nor_started_again() {
    for level in LEVELS {
        let db = TestDb::new().await;
        define(&db.pool, "orders", &[step("a")]).await;
        let [before, meanwhile] = [Uuid::now_v7(), Uuid::now_v7()];
        let known = [(before, json!(1))];
        start_many_as(&db.pool, "orders", &known).await;
        let mut starting = looking(&db.pool, level).await;
        start_many_as(&db.pool, "orders", &[(meanwhile, json!(2))]).await;
        // What the transaction does see.
        let found = start_many_as(&mut *starting, "orders", &known).await;
        assert_eq!(found, known);
        let inputs = vec![Some(json!(3)); 3];
        let ids = [None, Some(meanwhile), Some(before)];
        let started = try_start_many(&mut *starting, "orders", &inputs, Some(&ids)).await;
        assert_eq!(
            raised(started),
            "40001: could not serialize access due to concurrent update",
            "{level}"
        );
        starting.rollback().await.expect("given up");
        assert_eq!(count(&db.pool, "pgflow.runs").await, 2);
        assert_invariants(&db.pool).await;
    }
}

#[tokio::test]
async fn many_runs_start_in_a_transaction_that_sees_one_state() {
    for level in LEVELS {
        let db = TestDb::new().await;
        define(&db.pool, "orders", &[step("a"), step("each").map()]).await;
        let mut starting = looking(&db.pool, level).await;
        // Others start runs of the flow beside it.
        start_many(&db.pool, "orders", vec![json!([1]); 10]).await;
        start_many(&mut *starting, "orders", vec![json!([1]); 10]).await;
        start_many(&db.pool, "orders", vec![json!([1]); 10]).await;
        starting.commit().await.expect("nobody is in the way");
        assert_eq!(count(&db.pool, "pgflow.step_tasks").await, 60, "{level}");
        assert_eq!(messages(&db.pool, "orders").await.len(), 60);
        assert_invariants(&db.pool).await;
    }
}
