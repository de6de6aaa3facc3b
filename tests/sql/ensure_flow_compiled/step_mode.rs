//! Flows with a queue for each step: compiled, verified, and compared with what they were before.

use serde_json::{Value, json};
use sqlx::postgres::PgPool;

use super::{assert_nothing_defined, definition, ensure_in, queues, run_sql, verified};
use crate::sql::stored::unchanged;
use crate::support::TestDb;
use crate::support::flows::{Step, define_with_step_queues, shape, start, step};
use crate::support::invariants::assert_invariants;
use crate::support::rows::raised;

fn two() -> Vec<Step> {
    vec![step("a"), step("b").deps(&["a"])]
}

fn two_routes() -> Value {
    json!([{"step": "a", "queue": "orders__a"}, {"step": "b", "queue": "orders__b"}])
}

async fn ensure_routed(pool: &PgPool, routes: &Value) -> sqlx::Result<Value> {
    sqlx::query_scalar("select pgflow.ensure_flow_compiled('orders', $1, 'step', $2)")
        .bind(shape(&two()))
        .bind(routes)
        .fetch_one(pool)
        .await
}

async fn refused(pool: &PgPool, sql: &'static str) -> String {
    raised(unchanged(pool, sqlx::query(sql).execute(pool)).await)
}

#[tokio::test]
async fn a_missing_flow_is_compiled_with_its_queues_and_verified_from_then_on() {
    let db = TestDb::new().await;
    let compiled = json!({"status": "compiled", "differences": [], "mismatch_kind": null, "options_differ": [], "workers": []});
    let first = ensure_routed(&db.pool, &two_routes()).await;
    assert_eq!(first.expect("an answer"), compiled);
    assert_eq!(queues(&db.pool).await, ["orders__a", "orders__b"]);
    assert_eq!(definition(&db.pool).await["flows"][0]["queue_mode"], "step");
    let again = unchanged(&db.pool, ensure_routed(&db.pool, &two_routes())).await;
    assert_eq!(again.expect("an answer"), verified());
    let without_map = unchanged(&db.pool, ensure_in(&db.pool, "step", &two())).await;
    assert_eq!(without_map.expect("an answer"), verified());
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn queues_are_tuned_as_those_of_plain_flows_are() {
    let db = TestDb::new().await;
    ensure_in(&db.pool, "step", &two()).await.expect("compiled");
    run_sql(&db.pool, "select pgflow.create_flow('plain')").await;
    let settings: Vec<(String, Vec<String>)> = sqlx::query_as(
        "select relname::text, reloptions from pg_class
         where relnamespace = 'pgmq'::regnamespace and relkind = 'r' and relname like 'q\\_%' order by relname collate \"C\"",
    )
    .fetch_all(&db.pool)
    .await
    .expect("the catalog can be read");
    let names: Vec<&str> = settings.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["q_orders__a", "q_orders__b", "q_plain"]);
    assert_eq!(settings[0].1.len(), 5);
    assert!(
        settings
            .iter()
            .all(|(_, options)| *options == settings[2].1)
    );
}

#[tokio::test]
async fn any_other_route_map_is_refused_and_nothing_is_left() {
    let db = TestDb::new().await;
    let entry = |step: &str, queue: &str| json!({"step": step, "queue": queue});
    let [a, b] = [entry("a", "orders__a"), entry("b", "orders__b")];
    let wrong = [
        ("missing", json!([a])),
        ("all missing", json!([])),
        ("extra", json!([a, b, entry("c", "orders__c")])),
        ("twice", json!([a, b, b])),
        ("reordered", json!([b, a])),
        ("renamed step", json!([a, entry("B", "orders__b")])),
        ("other queue", json!([a, entry("b", "orders__c")])),
        (
            "each other's queues",
            json!([entry("a", "orders__b"), entry("b", "orders__a")]),
        ),
        ("other case", json!([a, entry("b", "Orders__b")])),
        ("fallback", json!([a, entry("b", "orders__1")])),
        (
            "the flow's queue",
            json!([entry("a", "orders"), entry("b", "orders")]),
        ),
        ("no queue", json!([a, {"step": "b"}])),
        ("null queue", json!([a, {"step": "b", "queue": null}])),
        (
            "more about a step",
            json!([a, {"step": "b", "queue": "orders__b", "index": 1}]),
        ),
        ("an object", json!({"a": "orders__a", "b": "orders__b"})),
        ("JSON null", json!(null)),
    ];
    for (what, routes) in &wrong {
        assert_eq!(
            raised(unchanged(&db.pool, ensure_routed(&db.pool, routes)).await),
            "PF009: flow \"orders\": the worker routes its steps to other queues than the database",
            "{what}"
        );
    }
    assert_nothing_defined(&db.pool).await;
    ensure_routed(&db.pool, &two_routes())
        .await
        .expect("compiled");
    for (what, routes) in &wrong {
        let answer = unchanged(&db.pool, ensure_routed(&db.pool, routes)).await;
        assert!(raised(answer).starts_with("PF009: "), "{what}");
    }
}

#[tokio::test]
async fn a_flow_with_step_queues_has_a_step() {
    let db = TestDb::new().await;
    assert_eq!(
        raised(unchanged(&db.pool, ensure_in(&db.pool, "step", &[])).await),
        "PF004: flow \"orders\" has a queue for each step, but no step"
    );
    assert_nothing_defined(&db.pool).await;
}

#[tokio::test]
async fn the_calls_for_plain_flows_refuse_it() {
    let db = TestDb::new().await;
    define_with_step_queues(&db.pool, "orders", &two()).await;
    for call in [
        "select pgflow.add_step('orders', 'c')",
        "select pgflow.add_step('orders', 'a')",
        "select pgflow.add_step('orders', 'A')",
        "select pgflow.add_step('orders', 'c', array['missing'])",
    ] {
        assert_eq!(
            refused(&db.pool, call).await,
            "PF011: flow \"orders\" has a queue per step; add_step serves flows with one queue",
            "{call}"
        );
    }
    assert_eq!(
        refused(&db.pool, "select pgflow.create_flow('orders')").await,
        "PF011: flow \"orders\" has a queue per step; create_flow serves flows with one queue"
    );
    assert_eq!(
        refused(&db.pool, "select pgflow.create_flow('ORDERS')").await,
        "PF006: flow \"ORDERS\" differs from flow \"orders\" only in case"
    );
    assert_eq!(queues(&db.pool).await, ["orders__a", "orders__b"]);
}

#[tokio::test]
async fn the_queue_that_a_plain_flow_would_have_stays_anybodys() {
    let db = TestDb::new().await;
    run_sql(
        &db.pool,
        "select pgmq.create('orders'); select pgmq.send('orders', '{}')",
    )
    .await;
    ensure_in(&db.pool, "step", &two()).await.expect("compiled");
    start(&db.pool, "orders", json!({})).await;
    assert_eq!(queues(&db.pool).await, ["orders", "orders__a", "orders__b"]);
    let answer = unchanged(&db.pool, ensure_in(&db.pool, "step", &two())).await;
    assert_eq!(answer.expect("an answer"), verified());
    run_sql(&db.pool, "select pgflow.delete_flow_and_data('orders')").await;
    assert_eq!(queues(&db.pool).await, ["orders"]);
    let kept: i64 = sqlx::query_scalar("select count(*) from pgmq.q_orders")
        .fetch_one(&db.pool)
        .await
        .expect("the queue is there");
    assert_eq!(kept, 1);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn another_shape_is_told_before_another_mode() {
    let db = TestDb::new().await;
    ensure_in(&db.pool, "step", &two()).await.expect("compiled");
    let answer = unchanged(
        &db.pool,
        ensure_in(&db.pool, "flow", &[step("a"), step("b")]),
    )
    .await;
    let answer = answer.expect("an answer");
    assert_eq!(
        (&answer["status"], &answer["mismatch_kind"]),
        (&json!("mismatch"), &json!("shape"))
    );
    assert_eq!(
        answer["differences"],
        json!(["step \"b\": a root step in the code, depends_on = [a] in the database"])
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn another_mode_is_a_mismatch_of_routing_in_both_directions() {
    for (stored, asked, flags, [a, b]) in [
        (
            "flow",
            "step",
            "with_step_queues: yes in the code, no in the database",
            [("orders__a", "orders"), ("orders__b", "orders")],
        ),
        (
            "step",
            "flow",
            "with_step_queues: no in the code, yes in the database",
            [("orders", "orders__a"), ("orders", "orders__b")],
        ),
    ] {
        let db = TestDb::new().await;
        ensure_in(&db.pool, stored, &two()).await.expect("compiled");
        start(&db.pool, "orders", json!({})).await;
        let answer = unchanged(&db.pool, ensure_in(&db.pool, asked, &two())).await;
        assert_eq!(
            answer.expect("an answer"),
            json!({
                "status": "mismatch", "mismatch_kind": "routing", "options_differ": [], "workers": [],
                "differences": [
                    flags,
                    format!("step \"a\": queue {} in the code, {} in the database", a.0, a.1),
                    format!("step \"b\": queue {} in the code, {} in the database", b.0, b.1),
                ],
            })
        );
        assert_invariants(&db.pool).await;
    }
}

#[tokio::test]
async fn another_mode_of_a_flow_without_steps_is_refused_as_one_that_can_not_be() {
    let db = TestDb::new().await;
    ensure_in(&db.pool, "flow", &[]).await.expect("compiled");
    assert_eq!(
        raised(unchanged(&db.pool, ensure_in(&db.pool, "step", &[])).await),
        "PF004: flow \"orders\" has a queue for each step, but no step"
    );
}

#[tokio::test]
async fn a_stored_route_that_was_changed_by_hand_is_a_mismatch_of_routing() {
    let db = TestDb::new().await;
    ensure_in(&db.pool, "step", &two()).await.expect("compiled");
    run_sql(
        &db.pool,
        "select pgmq.create('elsewhere'); update pgflow.steps set queue_name = 'elsewhere' where step_slug = 'b'",
    )
    .await;
    let answer = unchanged(&db.pool, ensure_in(&db.pool, "step", &two())).await;
    let answer = answer.expect("an answer");
    assert_eq!(
        (&answer["status"], &answer["mismatch_kind"]),
        (&json!("mismatch"), &json!("routing"))
    );
    assert_eq!(
        answer["differences"],
        json!(["step \"b\": queue orders__b in the code, elsewhere in the database"])
    );
}

#[tokio::test]
async fn options_are_reported_and_not_applied() {
    let db = TestDb::new().await;
    ensure_in(&db.pool, "step", &two()).await.expect("compiled");
    let tuned = [step("a").timeout(7), step("b").deps(&["a"]).max_attempts(2)];
    // Noted as reported the first time.
    ensure_in(&db.pool, "step", &tuned)
        .await
        .expect("an answer");
    let answer = unchanged(&db.pool, ensure_in(&db.pool, "step", &tuned)).await;
    let answer = answer.expect("an answer");
    assert_eq!(answer["status"], "verified");
    assert_eq!(
        answer["options_differ"],
        json!([
            "step \"a\", timeout: 7 s in the code, inherited in the database",
            "step \"b\", max_attempts: 2 in the code, inherited in the database",
        ])
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_long_name_falls_back_to_the_index_and_is_verified_again() {
    let db = TestDb::new().await;
    let steps = [step("first"), step(&"s".repeat(41)), step(&"t".repeat(39))];
    for status in ["compiled", "verified"] {
        let answer = ensure_in(&db.pool, "step", &steps).await;
        assert_eq!(answer.expect("an answer")["status"], status);
    }
    let readable = format!("orders__{}", "t".repeat(39));
    assert_eq!(readable.len(), 47);
    assert_eq!(
        queues(&db.pool).await,
        ["orders__1", "orders__first", &readable]
    );
    assert_invariants(&db.pool).await;
}
