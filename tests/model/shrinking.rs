//! A planted fault is found, and what is reported is small.

use sqlx::AssertSqlSafe;

use super::search::{Failed, search};
use super::setup::prepare;
use crate::mutations::Mutation;
use crate::support::TestDb;

/// Plants a fault in a database of its own, and returns the case that shows it.
async fn found(mutation: &str) -> Box<Failed> {
    let db = TestDb::new().await;
    prepare(&db.pool)
        .await
        .expect("the database can be prepared");
    let sql = Mutation::named(mutation).sql();
    let sql = sql.expect("the fault can be written");
    let planted = sqlx::raw_sql(AssertSqlSafe(sql)).execute(&db.pool).await;
    planted.expect("the fault can be planted");
    let mut connection = db.pool.acquire().await.expect("a connection");
    let result = search(&mut connection, 1, 500, true).await;
    result.expect_err("the fault is found")
}

#[tokio::test]
async fn a_fault_of_dependencies_needs_three_steps() {
    let failed = found("counts_dependents_down_twice").await;
    assert!(failed.difference.contains("SQL \"started\""), "{failed}");
    assert!(failed.case.flow.steps.len() <= 3, "{failed}");
    assert!(failed.case.inputs.len() == 1, "{failed}");
    assert!(failed.calls.len() <= 3, "{failed}");
}

#[tokio::test]
async fn a_fault_of_attempts_needs_one_step() {
    let failed = found("completes_any_attempt").await;
    assert!(failed.difference.contains("stale"), "{failed}");
    assert!(failed.case.flow.steps.len() == 1, "{failed}");
    assert!(failed.case.inputs.len() == 1, "{failed}");
    assert!(failed.calls.len() <= 3, "{failed}");
}
