//! `delete_flow_and_data`: one flow and all that is its own goes; nothing else does.

use serde_json::json;
use sqlx::postgres::{PgExecutor, PgPool};

use crate::support::TestDb;
use crate::support::flows::{
    claim, claim_one, define, drain, raw_claim, start, step, try_claim, worker,
};
use crate::support::invariants::assert_invariants;
use crate::support::operations::{disable, worker_of};
use crate::support::rows::{count, raised, run};
use crate::support::runs::{Item, claim_all, fail_for_good, try_complete_batch};

pub(super) async fn try_delete(db: impl PgExecutor<'_>, flow: &str) -> sqlx::Result<i64> {
    sqlx::query_scalar("select pgflow.delete_flow_and_data($1)")
        .bind(flow)
        .fetch_one(db)
        .await
}

/// Everything that a database knows of flows: rows of each table, and tables of queues.
pub(super) async fn known(pool: &PgPool) -> Vec<String> {
    sqlx::query_scalar(
        "select 'flow ' || flow_slug from pgflow.flows
         union all select 'step ' || flow_slug || '.' || step_slug from pgflow.steps
         union all select 'dep ' || flow_slug || '.' || step_slug || ' on ' || dep_slug from pgflow.deps
         union all select distinct 'runs of ' || flow_slug from pgflow.runs
         union all select distinct 'states of ' || flow_slug from pgflow.step_states
         union all select distinct 'tasks of ' || flow_slug from pgflow.step_tasks
         union all select 'a claim of ' || coalesce(r.flow_slug, 'nobody') from pgflow.claims c left join pgflow.runs r on r.run_id = any (c.run_ids)
         union all select 'queue ' || queue_name from pgmq.meta
         union all select 'table ' || relname from pg_class
            where relnamespace = 'pgmq'::regnamespace and relkind = 'r' and relname ~ '^[qa]_'
         order by 1",
    )
    .fetch_all(pool)
    .await
    .expect("the catalog can be read")
}

#[tokio::test]
async fn a_flow_goes_with_runs_of_every_status_definition_and_queue() {
    let db = TestDb::new().await;
    let steps = [step("a"), step("b").map().deps(&["a"])];
    define(&db.pool, "other", &steps).await;
    start(&db.pool, "other", json!({})).await;
    let others = worker(&db.pool, "other").await;
    claim(&db.pool, others, 1).await;
    let before = known(&db.pool).await;
    assert!(before.contains(&"a claim of other".to_owned()));

    define(&db.pool, "Orders", &steps).await;
    let worker = worker(&db.pool, "Orders").await;
    start(&db.pool, "Orders", json!({})).await;
    drain(&db.pool, worker, |_| json!([1])).await;
    start(&db.pool, "Orders", json!({})).await;
    let failing = claim_one(&db.pool, worker).await;
    fail_for_good(&db.pool, &failing, "no").await;
    for _ in 0..2 {
        start(&db.pool, "Orders", json!({})).await;
    }
    claim(&db.pool, worker, 1).await;

    let removed = try_delete(&db.pool, "Orders").await;
    assert_eq!(removed.expect("deleted"), 4);
    assert_eq!(known(&db.pool).await, before);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn only_the_exact_slug_deletes() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("a")]).await;
    let id = start(&db.pool, "orders", json!({})).await;
    for wrong in ["Orders", "orders ", "order", "", "%"] {
        assert_eq!(
            raised(try_delete(&db.pool, wrong).await),
            format!("PF001: flow \"{wrong}\" is not defined in this database; nothing was deleted")
        );
    }
    let refused = try_delete(&db.pool, "ORDERS").await.expect_err("refused");
    let refused = refused.as_database_error().expect("Postgres said so");
    let refused = refused.downcast_ref::<sqlx::postgres::PgDatabaseError>();
    assert_eq!(
        refused.hint(),
        Some("There is a flow \"orders\": write it exactly so to delete it.")
    );
    let null = sqlx::query("select pgflow.delete_flow_and_data(null)");
    let refused = raised(null.execute(&db.pool).await);
    assert!(refused.starts_with("PF001: "), "{refused}");
    assert_eq!(run(&db.pool, id).await.status, "started");
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_flow_whose_queue_was_dropped_can_be_deleted() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("a")]).await;
    start(&db.pool, "orders", json!({})).await;
    sqlx::raw_sql("select pgmq.drop_queue('orders')")
        .execute(&db.pool)
        .await
        .expect("dropped");
    assert_eq!(try_delete(&db.pool, "orders").await.expect("deleted"), 1);
    assert_eq!(known(&db.pool).await, [""; 0]);
}

#[tokio::test]
async fn a_queue_that_another_flow_uses_stays() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("a")]).await;
    define(&db.pool, "other", &[step("a")]).await;
    sqlx::raw_sql("update pgflow.steps set queue_name = 'orders' where flow_slug = 'other'")
        .execute(&db.pool)
        .await
        .expect("routes can be changed by hand");
    try_delete(&db.pool, "orders").await.expect("deleted");
    define(&db.pool, "without_steps", &[]).await;
    sqlx::raw_sql("update pgflow.steps set queue_name = 'without_steps'")
        .execute(&db.pool)
        .await
        .expect("routes can be changed by hand");
    try_delete(&db.pool, "other").await.expect("deleted");
    let left: Vec<String> = sqlx::query_scalar("select queue_name::text from pgmq.meta order by 1")
        .fetch_all(&db.pool)
        .await
        .expect("queues can be read");
    assert_eq!(left, ["orders", "without_steps"]);
}

#[tokio::test]
async fn workers_of_a_deleted_flow_are_told_to_stop_and_get_no_error() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("a"), step("b")]).await;
    define(&db.pool, "other", &[step("a")]).await;
    let [serving, elsewhere] = [
        worker(&db.pool, "orders").await,
        worker(&db.pool, "other").await,
    ];
    start(&db.pool, "orders", json!({})).await;
    let claimed = claim_one(&db.pool, serving).await;
    try_delete(&db.pool, "orders").await.expect("deleted");

    assert!(raw_claim(&db.pool, serving, 10).await.is_empty());
    let deprecated: bool = sqlx::query_scalar("select pgflow.worker_heartbeat($1)")
        .bind(serving)
        .fetch_one(&db.pool)
        .await
        .expect("a heartbeat");
    assert!(deprecated);
    let late = try_complete_batch(&db.pool, &[Item::of(&claimed, json!(1))]).await;
    assert_eq!(
        raised(late),
        format!(
            "PF003: there is no task \"a\" [0] in run {}",
            claimed.run_id
        )
    );

    let deprecated: bool = sqlx::query_scalar("select pgflow.worker_heartbeat($1)")
        .bind(elsewhere)
        .fetch_one(&db.pool)
        .await
        .expect("a heartbeat");
    assert!(!deprecated);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_deleted_flow_can_be_defined_anew() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("a")]).await;
    start(&db.pool, "orders", json!({})).await;
    let old = worker(&db.pool, "orders").await;
    try_delete(&db.pool, "orders").await.expect("deleted");

    define(&db.pool, "orders", &[step("x"), step("y").deps(&["x"])]).await;
    let id = start(&db.pool, "orders", json!({})).await;
    let old_claim = try_claim(&db.pool, old, 10).await;
    assert!(old_claim.expect("no error").is_empty());
    let new = worker(&db.pool, "orders").await;
    assert_eq!(drain(&db.pool, new, |_| json!(1)).await, 2);
    assert_eq!(run(&db.pool, id).await.status, "completed");
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_deletion_that_is_undone_leaves_everything_as_it_was() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("a")]).await;
    start(&db.pool, "orders", json!({})).await;
    let worker = worker(&db.pool, "orders").await;
    let before = known(&db.pool).await;
    let mut session = db.pool.begin().await.expect("a session");
    try_delete(&mut *session, "orders").await.expect("deleted");
    session.rollback().await.expect("undone");
    assert_eq!(known(&db.pool).await, before);
    assert_eq!(claim_all(&db.pool, worker).await.len(), 1);
    assert_eq!(count(&db.pool, "pgflow.runs").await, 1);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_publication_of_all_tables_is_named_as_what_stands_in_the_way() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("a")]).await;
    start(&db.pool, "orders", json!({})).await;
    sqlx::raw_sql("create publication everything for all tables")
        .execute(&db.pool)
        .await
        .expect("published");
    let refused = try_delete(&db.pool, "orders").await.expect_err("refused");
    let refused = refused.as_database_error().expect("Postgres said so");
    let refused = refused.downcast_ref::<sqlx::postgres::PgDatabaseError>();
    assert_eq!(refused.code(), "PF011");
    assert!(refused.message().contains("\"meta\""), "{refused}");
    let help = refused.hint().and_then(|hint| hint.split_once(": "));
    let (_, help) = help.expect("what helps");
    let help = help.trim_end_matches('.').to_owned();
    sqlx::raw_sql(sqlx::AssertSqlSafe(help))
        .execute(&db.pool)
        .await
        .expect("the hint can be followed");
    assert_eq!(try_delete(&db.pool, "orders").await.expect("deleted"), 1);
    assert_eq!(known(&db.pool).await, [""; 0]);
}

/// The worker functions that are known, with their state.
async fn functions(pool: &PgPool) -> Vec<(String, bool)> {
    sqlx::query_as("select function_name, enabled from pgflow.worker_functions order by 1")
        .fetch_all(pool)
        .await
        .expect("functions can be read")
}

#[tokio::test]
async fn worker_functions_of_the_flow_go_with_it_unless_they_live_or_serve_another() {
    let db = TestDb::new().await;
    for flow in ["orders", "other"] {
        define(&db.pool, flow, &[step("a")]).await;
    }
    for (function, flow) in [
        ("orders", "orders"),
        ("moved", "orders"),
        ("moved", "other"),
        ("alive", "orders"),
    ] {
        let worker = worker_of(&db.pool, function, flow).await;
        let started = if flow == "other" {
            "now()"
        } else {
            "now() - interval '1 hour'"
        };
        let heartbeat = if function == "alive" {
            "now() + interval '1 hour'"
        } else {
            "now() - interval '1 hour'"
        };
        let aged = format!(
            "update pgflow.workers set started_at = {started}, last_heartbeat_at = {heartbeat} where worker_id = '{worker}'"
        );
        sqlx::query(sqlx::AssertSqlSafe(aged))
            .execute(&db.pool)
            .await
            .unwrap();
    }
    disable(&db.pool, "orders", Some("retired")).await;
    try_delete(&db.pool, "orders").await.unwrap();
    let left = [("alive".to_owned(), true), ("moved".to_owned(), true)];
    assert_eq!(functions(&db.pool).await, left);
}

#[tokio::test]
async fn a_function_that_is_being_fenced_is_left_and_not_waited_for() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("a")]).await;
    crate::support::operations::track(&db.pool, "orders").await;
    let mut fencing = db.pool.begin().await.unwrap();
    sqlx::query("select from pgflow.worker_functions for update")
        .execute(&mut *fencing)
        .await
        .unwrap();
    try_delete(&db.pool, "orders").await.unwrap();
    fencing.rollback().await.unwrap();
    assert_eq!(functions(&db.pool).await, [("orders".to_owned(), true)]);
}
