//! The refusals of `add_step`: no step, no flow, or not the step that is stored.

use serde_json::json;
use sqlx::postgres::PgPool;

use super::{add, edges, flow};
use crate::support::TestDb;
use crate::support::flows::{Step, start, step};
use crate::support::invariants::assert_invariants;
use crate::support::rows::{count, raised};

pub(super) async fn refusal(pool: &PgPool, step: Step) -> String {
    raised(step.add(pool, "orders").await)
}

#[tokio::test]
async fn a_stored_step_can_not_change_its_structure() {
    let db = TestDb::new().await;
    flow(&db.pool, &[step("a"), step("b"), step("c").deps(&["a"])]).await;
    for changed in [
        step("c"),
        step("c").deps(&["b"]),
        step("c").deps(&["a", "b"]),
        step("c").deps(&["a"]).map(),
        step("c").deps(&["a"]).required(json!({})),
        step("c").deps(&["a"]).forbidden(json!({})),
        step("c").deps(&["a"]).when_unmet("fail"),
        step("c").deps(&["a"]).when_exhausted("skip"),
    ] {
        assert_eq!(
            refusal(&db.pool, changed).await,
            "PF004: step \"c\" of flow \"orders\" is defined already, with another structure"
        );
    }
    assert_eq!(edges(&db.pool).await, [("a".to_owned(), "c".to_owned())]);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn slugs_that_differ_only_in_case_are_refused() {
    let db = TestDb::new().await;
    flow(&db.pool, &[step("Fetch")]).await;
    assert_eq!(
        refusal(&db.pool, step("fetch")).await,
        "PF004: step \"fetch\" differs from step \"Fetch\" only in case"
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn what_can_not_be_a_step_is_refused() {
    let db = TestDb::new().await;
    flow(&db.pool, &[step("a"), step("b")]).await;
    for (refused, message) in [
        (step("no-dash"), "step slug \"no-dash\" is not valid"),
        (step("run"), "step slug \"run\" is not valid"),
        (step("c").deps(&["c"]), "step \"c\" depends on itself"),
        (
            step("c").deps(&["a", "a"]),
            "step \"c\" lists dependency \"a\" twice",
        ),
        (
            step("c").deps(&["x", "a", "w"]),
            "step \"c\" depends on steps that flow \"orders\" does not have: w, x",
        ),
        (
            step("c").when_unmet("retry"),
            "step \"c\": when_unmet is \"retry\" and when_exhausted is \"fail\"; each must be \"fail\", \"skip\" or \"skip-cascade\"",
        ),
        (
            step("c").when_exhausted("stop"),
            "step \"c\": when_unmet is \"skip\" and when_exhausted is \"stop\"; each must be \"fail\", \"skip\" or \"skip-cascade\"",
        ),
        (
            step("c").required(json!([1])),
            "step \"c\": a condition is a JSON object",
        ),
        (
            step("c").required(json!("x")),
            "step \"c\": a condition is a JSON object",
        ),
        (
            step("c").forbidden(json!([])),
            "step \"c\": a condition is a JSON object",
        ),
        (
            step("c").forbidden(json!("x")),
            "step \"c\": a condition is a JSON object",
        ),
        (
            step("c").forbidden(json!(null)),
            "step \"c\": a condition is a JSON object",
        ),
        (
            step("c").map().required(json!({})),
            "map step \"c\" runs over the flow's input, which is a list; a condition is an object, so it could never hold",
        ),
        (
            step("c").map().forbidden(json!({"x": 1})),
            "map step \"c\" runs over the flow's input, which is a list; a condition is an object, so it could never hold",
        ),
        (
            step("c").max_attempts(0),
            "step c: max_attempts is 0; it counts the first attempt too, so it must be at least 1",
        ),
        (
            step("c").base_delay(-1),
            "step c: base_delay is -1 seconds; it must not be negative",
        ),
        (
            step("c").timeout(0),
            "step c: timeout is 0 seconds; it must be at least 1",
        ),
        (
            step("c").start_delay(-1),
            "step c: start_delay is -1 seconds; it must not be negative",
        ),
    ] {
        assert_eq!(
            refusal(&db.pool, refused).await,
            format!("PF004: {message}")
        );
    }
    let wrong_type = sqlx::query("select pgflow.add_step('orders', 'c', step_type => 'loop')");
    assert_eq!(
        raised(wrong_type.execute(&db.pool).await),
        "PF004: step \"c\": type is \"loop\"; it must be \"single\" or \"map\""
    );
    assert_eq!(count(&db.pool, "pgflow.steps").await, 2);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_null_dependency_is_refused() {
    let db = TestDb::new().await;
    flow(&db.pool, &[step("a")]).await;
    let null = sqlx::query("select pgflow.add_step('orders', 'c', array['a', null])");
    assert_eq!(
        raised(null.execute(&db.pool).await),
        "PF004: step \"c\" depends on steps that flow \"orders\" does not have: NULL"
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_flow_must_exist_and_have_one_queue() {
    let db = TestDb::new().await;
    assert_eq!(
        refusal(&db.pool, step("a")).await,
        "PF001: flow \"orders\" is not defined"
    );
    flow(&db.pool, &[step("a")]).await;
    sqlx::query("update pgflow.flows set queue_mode = 'step'")
        .execute(&db.pool)
        .await
        .expect("routed");
    assert_eq!(
        refusal(&db.pool, step("b")).await,
        "PF011: flow \"orders\" has a queue per step; add_step serves flows with one queue"
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_flow_with_runs_gets_no_new_step() {
    let db = TestDb::new().await;
    flow(&db.pool, &[step("a")]).await;
    start(&db.pool, "orders", json!({})).await;
    assert_eq!(
        refusal(&db.pool, step("b")).await,
        "PF004: flow \"orders\" has runs, so it can not get a new step \"b\""
    );
    add(&db.pool, step("a")).await;
    assert_invariants(&db.pool).await;
}
