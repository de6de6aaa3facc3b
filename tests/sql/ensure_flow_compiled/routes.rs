//! Routes: the map that a worker sends, the queues that are stored, the queues that are there.

use serde_json::{Value, json};
use sqlx::postgres::PgPool;

use super::{assert_nothing_defined, ensure, verified};
use crate::support::TestDb;
use crate::support::flows::{define, shape, step};
use crate::support::invariants::assert_invariants;
use crate::support::rows::raised;

fn shape_of_two() -> Value {
    shape(&[step("a"), step("b").deps(&["a"])])
}

async fn ensure_routed(pool: &PgPool, mode: &str, routes: &Value) -> sqlx::Result<Value> {
    sqlx::query_scalar(
        "select pgflow.ensure_flow_compiled('Orders', $1, queue_mode => $2, route_map => $3)",
    )
    .bind(shape_of_two())
    .bind(mode)
    .bind(routes)
    .fetch_one(pool)
    .await
}

#[tokio::test]
async fn a_route_map_that_follows_from_the_shape_is_accepted() {
    let db = TestDb::new().await;
    let routes = json!([{"step": "a", "queue": "orders"}, {"step": "b", "queue": "orders"}]);
    for status in ["compiled", "verified"] {
        let answer = ensure_routed(&db.pool, "flow", &routes).await;
        assert_eq!(answer.expect("an answer")["status"], status);
    }
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn any_other_route_map_is_refused_and_nothing_is_left() {
    let db = TestDb::new().await;
    for routes in [
        json!([]),
        json!([{"step": "a", "queue": "orders"}]),
        json!([{"step": "b", "queue": "orders"}, {"step": "a", "queue": "orders"}]),
        json!([{"step": "a", "queue": "orders"}, {"step": "b", "queue": "orders__b"}]),
        json!([{"step": "a", "queue": "orders"}, {"step": "c", "queue": "orders"}]),
        json!([{"step": "a", "queue": "Orders"}, {"step": "b", "queue": "Orders"}]),
        json!([{"step": "a", "queue": "orders"}, {"step": "b", "queue": "orders"}, {"step": "c", "queue": "orders"}]),
    ] {
        assert_eq!(
            raised(ensure_routed(&db.pool, "flow", &routes).await),
            "PF009: flow \"Orders\": the worker routes its steps to other queues than the database"
        );
    }
    assert_nothing_defined(&db.pool).await;
}

#[tokio::test]
async fn there_are_two_queue_modes() {
    let db = TestDb::new().await;
    assert_eq!(
        raised(ensure_routed(&db.pool, "none", &json!([])).await),
        "PF009: flow \"Orders\": queue mode \"none\" is unknown; it is \"flow\" or \"step\""
    );
    assert_nothing_defined(&db.pool).await;
}

#[tokio::test]
async fn stored_routes_to_another_queue_are_a_mismatch() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("a"), step("b").deps(&["a"])]).await;
    sqlx::query("update pgflow.steps set queue_name = 'orders__b' where step_slug = 'b'")
        .execute(&db.pool)
        .await
        .expect("routed");
    assert_eq!(
        ensure(&db.pool, "orders", &shape_of_two())
            .await
            .expect("an answer"),
        json!({
            "status": "mismatch", "mismatch_kind": "routing", "options_differ": [], "workers": [],
            "differences": ["step \"b\": queue orders in the code, orders__b in the database"],
        })
    );
}

#[tokio::test]
async fn a_queue_that_somebody_else_made_is_refused_and_nothing_is_left() {
    let db = TestDb::new().await;
    sqlx::query("select pgmq.create('orders')")
        .execute(&db.pool)
        .await
        .expect("created");
    assert_eq!(
        raised(ensure(&db.pool, "Orders", &shape_of_two()).await),
        "PF006: flow \"Orders\": a queue \"orders\" exists, and no flow owns it"
    );
    sqlx::query("select pgmq.drop_queue('orders')")
        .execute(&db.pool)
        .await
        .expect("dropped");
    assert_nothing_defined(&db.pool).await;
}

#[tokio::test]
async fn verification_finds_a_dropped_queue() {
    let db = TestDb::new().await;
    ensure(&db.pool, "orders", &shape_of_two())
        .await
        .expect("compiled");
    assert_eq!(
        ensure(&db.pool, "orders", &shape_of_two())
            .await
            .expect("an answer"),
        verified()
    );
    sqlx::query("select pgmq.drop_queue('orders')")
        .execute(&db.pool)
        .await
        .expect("dropped");
    assert_eq!(
        raised(ensure(&db.pool, "orders", &shape_of_two()).await),
        "PF006: flow \"orders\": its queue \"orders\" is no longer listed in pgmq.meta"
    );
}

#[tokio::test]
async fn a_flow_that_differs_only_in_case_is_refused() {
    let db = TestDb::new().await;
    ensure(&db.pool, "orders", &shape_of_two())
        .await
        .expect("compiled");
    assert_eq!(
        raised(ensure(&db.pool, "Orders", &shape_of_two()).await),
        "PF006: flow \"Orders\" differs from flow \"orders\" only in case"
    );
    assert_invariants(&db.pool).await;
}
