//! `_flow_shape`: a stored flow as its workers describe it.

use serde_json::{Value, json};
use sqlx::postgres::PgPool;

use super::{ensure, everything};
use crate::support::TestDb;
use crate::support::flows::{define, shape, step};

async fn stored(pool: &PgPool, flow: &str) -> Value {
    sqlx::query_scalar("select pgflow._flow_shape($1)")
        .bind(flow)
        .fetch_one(pool)
        .await
        .expect("a shape can be read")
}

#[tokio::test]
async fn each_step_stands_in_its_place_with_all_its_parts_and_no_options() {
    let db = TestDb::new().await;
    let steps = [
        step("z_list"),
        step("each").map().deps(&["z_list"]).timeout(9),
        step("b").when_exhausted("skip-cascade"),
        step("a_join")
            .deps(&["z_list", "each", "b"])
            .required(json!({"each": [1]}))
            .forbidden(json!({"b": {}}))
            .when_unmet("fail"),
    ];
    define(&db.pool, "orders", &steps).await;
    define(&db.pool, "other", &[step("a")]).await;
    let plain = |slug: &str, kind: &str, deps: Value| {
        json!({
            "slug": slug, "stepType": kind, "dependencies": deps, "whenUnmet": "skip", "whenExhausted": "fail",
            "requiredInputPattern": {"defined": false}, "forbiddenInputPattern": {"defined": false},
        })
    };
    let mut b = plain("b", "single", json!([]));
    b["whenExhausted"] = json!("skip-cascade");
    let mut join = plain("a_join", "single", json!(["b", "each", "z_list"]));
    join["whenUnmet"] = json!("fail");
    join["requiredInputPattern"] = json!({"defined": true, "value": {"each": [1]}});
    join["forbiddenInputPattern"] = json!({"defined": true, "value": {"b": {}}});
    assert_eq!(
        stored(&db.pool, "orders").await,
        json!({"steps": [
            plain("z_list", "single", json!([])),
            plain("each", "map", json!(["z_list"])),
            b,
            join,
        ]})
    );
}

#[tokio::test]
async fn a_flow_that_is_not_defined_has_no_steps() {
    let db = TestDb::new().await;
    assert_eq!(stored(&db.pool, "orders").await, json!({"steps": []}));
}

#[tokio::test]
async fn what_was_compiled_is_what_was_sent_but_for_its_options() {
    let db = TestDb::new().await;
    let mut sent = shape(&everything());
    ensure(&db.pool, "orders", &sent).await.expect("compiled");
    sent.as_object_mut().expect("a shape").remove("options");
    for step in sent["steps"].as_array_mut().expect("steps") {
        step.as_object_mut().expect("a step").remove("options");
    }
    assert_eq!(stored(&db.pool, "orders").await, sent);
}
