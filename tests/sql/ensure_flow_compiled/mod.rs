//! `ensure_flow_compiled`: compiles what is missing, verifies what is there, refuses the rest and
//! leaves nothing behind.

mod collisions;
mod differences;
mod faults;
mod local;
mod production;
mod refusals;
mod routes;
mod step_mode;
mod stored_shape;

use serde_json::{Value, json};
use sqlx::AssertSqlSafe;
use sqlx::postgres::{PgExecutor, PgPool};

use crate::support::TestDb;
use crate::support::flows::{Step, define, shape, step};
use crate::support::invariants::assert_invariants;
use crate::support::rows::count;

pub(super) async fn ensure(
    db: impl PgExecutor<'_>,
    flow: &str,
    shape: &Value,
) -> sqlx::Result<Value> {
    sqlx::query_scalar("select pgflow.ensure_flow_compiled($1, $2)")
        .bind(flow)
        .bind(shape)
        .fetch_one(db)
        .await
}

/// As [`ensure`] of flow `orders`, in a queue mode.
async fn ensure_in(db: impl PgExecutor<'_>, mode: &str, steps: &[Step]) -> sqlx::Result<Value> {
    sqlx::query_scalar("select pgflow.ensure_flow_compiled('orders', $1, queue_mode => $2)")
        .bind(shape(steps))
        .bind(mode)
        .fetch_one(db)
        .await
}

/// The names of all queues, as PGMQ lists them.
async fn queues(pool: &PgPool) -> Vec<String> {
    sqlx::query_scalar("select queue_name::text from pgmq.meta order by queue_name collate \"C\"")
        .fetch_all(pool)
        .await
        .expect("queues can be read")
}

/// Runs statements that prepare a test.
async fn run_sql(pool: &PgPool, sql: impl Into<String>) {
    let sql = sql.into();
    let ran = sqlx::raw_sql(AssertSqlSafe(sql.clone()))
        .execute(pool)
        .await;
    ran.unwrap_or_else(|error| panic!("{sql}: {error}"));
}

async fn answer(pool: &PgPool, steps: &[Step]) -> Value {
    ensure(pool, "orders", &shape(steps))
        .await
        .expect("an answer")
}

fn verified() -> Value {
    json!({"status": "verified", "differences": [], "mismatch_kind": null, "options_differ": [], "workers": []})
}

/// Every row of the definition tables, without times.
async fn definition(pool: &PgPool) -> Value {
    sqlx::query_scalar(
        "select jsonb_build_object(
            'flows', (select jsonb_agg(to_jsonb(f) - 'created_at' order by f.flow_slug) from pgflow.flows f),
            'steps', (select jsonb_agg(to_jsonb(s) - 'created_at' order by s.flow_slug, s.step_index) from pgflow.steps s),
            'deps', (select jsonb_agg(to_jsonb(d) - 'created_at' order by d.flow_slug, d.step_slug, d.dep_slug) from pgflow.deps d))",
    )
    .fetch_one(pool)
    .await
    .expect("definitions can be read")
}

/// That no flow, no step, no queue is there: neither before nor after what was refused.
async fn assert_nothing_defined(pool: &PgPool) {
    assert_eq!(
        definition(pool).await,
        json!({"flows": null, "steps": null, "deps": null})
    );
    assert_eq!(count(pool, "pgmq.meta").await, 0);
}

/// A flow with one of everything that a shape can say.
fn everything() -> Vec<Step> {
    vec![
        step("list"),
        step("each").deps(&["list"]).map().when_exhausted("skip"),
        step("other")
            .required(json!({"plan": "pro"}))
            .when_unmet("skip-cascade"),
        step("join")
            .deps(&["each", "other"])
            .forbidden(json!({"other": {}}))
            .when_unmet("fail")
            .max_attempts(7)
            .base_delay(1)
            .timeout(9)
            .start_delay(11),
    ]
}

#[tokio::test]
async fn a_missing_flow_is_compiled_to_the_rows_that_the_sql_calls_write() {
    let (by_shape, by_calls) = (TestDb::new().await, TestDb::new().await);
    let mut shape = shape(&everything());
    shape["options"] = json!({"baseDelay": 0});
    assert_eq!(
        ensure(&by_shape.pool, "orders", &shape)
            .await
            .expect("an answer"),
        json!({"status": "compiled", "differences": [], "mismatch_kind": null, "options_differ": [], "workers": []})
    );
    define(&by_calls.pool, "orders", &everything()).await;
    assert_eq!(
        definition(&by_shape.pool).await,
        definition(&by_calls.pool).await
    );
    assert_invariants(&by_shape.pool).await;
}

#[tokio::test]
async fn a_compiled_flow_is_verified_from_then_on_and_stays_as_it_is() {
    let db = TestDb::new().await;
    assert_eq!(answer(&db.pool, &everything()).await["status"], "compiled");
    let before = definition(&db.pool).await;
    for _ in 0..2 {
        assert_eq!(answer(&db.pool, &everything()).await, verified());
    }
    assert_eq!(definition(&db.pool).await, before);
    assert_eq!(count(&db.pool, "pgmq.meta").await, 1);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn options_of_the_shape_are_stored_and_absent_ones_inherit() {
    let db = TestDb::new().await;
    let mut shape = shape(&[step("a").timeout(9), step("b")]);
    shape["options"] = json!({"maxAttempts": 7});
    ensure(&db.pool, "orders", &shape).await.expect("compiled");
    let rows = definition(&db.pool).await;
    let options = |row: &Value| {
        ["opt_max_attempts", "opt_base_delay", "opt_timeout"].map(|column| row[column].clone())
    };
    assert_eq!(options(&rows["flows"][0]), [7, 5, 60]);
    assert_eq!(
        options(&rows["steps"][0]),
        [json!(null), json!(null), json!(9)]
    );
    assert_eq!(rows["steps"][1]["opt_timeout"], json!(null));

    let mut without: Value = shape.clone();
    without
        .as_object_mut()
        .expect("an object")
        .remove("options");
    let steps = without["steps"].as_array_mut().expect("steps");
    for step in steps {
        step.as_object_mut().expect("an object").remove("options");
    }
    assert_eq!(
        ensure(&db.pool, "orders", &without)
            .await
            .expect("an answer"),
        verified()
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_flow_without_steps_is_fine() {
    let db = TestDb::new().await;
    assert_eq!(answer(&db.pool, &[]).await["status"], "compiled");
    assert_eq!(answer(&db.pool, &[]).await, verified());
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_flow_that_sql_calls_defined_is_verified() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &everything()).await;
    assert_eq!(answer(&db.pool, &everything()).await, verified());
    assert_invariants(&db.pool).await;
}
