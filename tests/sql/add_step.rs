//! `add_step`: what is stored, what is refused, and what a repeated call may change.

use serde_json::{Value, json};
use sqlx::Row;
use sqlx::postgres::{PgPool, PgRow};

use crate::support::TestDb;
use crate::support::flows::{Step, define, start, step};
use crate::support::invariants::assert_invariants;
use crate::support::rows::{count, raised};

async fn flow(pool: &PgPool, steps: &[Step]) {
    define(pool, "orders", steps).await;
}

async fn add(pool: &PgPool, step: Step) -> PgRow {
    step.add(pool, "orders")
        .await
        .expect("the step can be added")
}

async fn refusal(pool: &PgPool, step: Step) -> String {
    raised(step.add(pool, "orders").await)
}

/// (dependency, step), sorted.
async fn edges(pool: &PgPool) -> Vec<(String, String)> {
    sqlx::query_as("select dep_slug, step_slug from pgflow.deps order by 2, 1")
        .fetch_all(pool)
        .await
        .expect("edges can be read")
}

#[tokio::test]
async fn a_step_has_defaults_for_all_but_its_slug() {
    let db = TestDb::new().await;
    flow(&db.pool, &[]).await;
    let row: Value = sqlx::query_scalar(
        "select to_jsonb(s) - 'created_at' from pgflow.add_step('orders', 'Fetch') s",
    )
    .fetch_one(&db.pool)
    .await
    .expect("added");
    assert_eq!(
        row,
        json!({
            "flow_slug": "orders", "step_slug": "Fetch", "step_type": "single", "step_index": 0, "deps_count": 0, "queue_name": "orders",
            "opt_max_attempts": null, "opt_base_delay": null, "opt_timeout": null, "opt_start_delay": null,
            "required_input_pattern": null, "forbidden_input_pattern": null, "when_unmet": "skip", "when_exhausted": "fail",
            "feeds_map": false,
        })
    );
    let nulls: i64 = sqlx::query_scalar(
        "select count(*) from pgflow.add_step('orders', 'Fetch', null, step_type => null, when_unmet => null, when_exhausted => null)",
    )
    .fetch_one(&db.pool)
    .await
    .expect("null is the default");
    assert_eq!(nulls, 1);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn everything_that_is_given_is_stored() {
    let db = TestDb::new().await;
    flow(&db.pool, &[step("fetch")]).await;
    let full = step("pack")
        .deps(&["fetch"])
        .max_attempts(7)
        .base_delay(0)
        .timeout(9)
        .start_delay(0)
        .required(json!({"fetch": {"ok": true}}))
        .forbidden(json!({"fetch": {"deep": {"er": [1]}}}))
        .when_unmet("skip-cascade")
        .when_exhausted("skip");
    let row = add(&db.pool, full).await;
    let options: [i32; 4] = [
        "opt_max_attempts",
        "opt_base_delay",
        "opt_timeout",
        "opt_start_delay",
    ]
    .map(|column| row.get(column));
    assert_eq!(options, [7, 0, 9, 0]);
    let patterns: [Value; 2] =
        ["required_input_pattern", "forbidden_input_pattern"].map(|column| row.get(column));
    assert_eq!(
        patterns,
        [
            json!({"fetch": {"ok": true}}),
            json!({"fetch": {"deep": {"er": [1]}}})
        ]
    );
    let modes: [String; 2] = ["when_unmet", "when_exhausted"].map(|column| row.get(column));
    assert_eq!(modes, ["skip-cascade", "skip"]);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_definition_knows_when_it_was_stored() {
    let db = TestDb::new().await;
    flow(&db.pool, &[step("a"), step("b").deps(&["a"])]).await;
    let recent: i64 = sqlx::query_scalar(
        "select count(*) from (
            select created_at from pgflow.flows union all select created_at from pgflow.steps union all select created_at from pgflow.deps
         ) x where created_at between now() - interval '1 hour' and now()",
    )
    .fetch_one(&db.pool)
    .await
    .expect("times can be read");
    assert_eq!(recent, 4);
}

#[tokio::test]
async fn steps_are_numbered_in_the_order_of_the_calls_for_each_flow() {
    let db = TestDb::new().await;
    let steps = [step("c"), step("a"), step("b").deps(&["c", "a"])];
    define(&db.pool, "first", &steps).await;
    define(&db.pool, "second", &steps).await;
    let numbered: Vec<(String, String, i32, i32)> = sqlx::query_as(
        "select flow_slug, step_slug, step_index, deps_count from pgflow.steps order by flow_slug, step_index",
    )
    .fetch_all(&db.pool)
    .await
    .expect("steps can be read");
    let expected = ["first", "second"].iter().flat_map(|flow| {
        [("c", 0, 0), ("a", 1, 0), ("b", 2, 2)]
            .map(|(step, index, deps)| ((*flow).to_owned(), step.to_owned(), index, deps))
    });
    assert_eq!(numbered, expected.collect::<Vec<_>>());
    assert_eq!(count(&db.pool, "pgflow.deps").await, 4);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_single_step_may_depend_on_any_number_and_a_map_on_one() {
    let db = TestDb::new().await;
    flow(&db.pool, &[step("a"), step("b"), step("c")]).await;
    add(&db.pool, step("join").deps(&["a", "b", "c"])).await;
    add(&db.pool, step("over_input").map()).await;
    add(&db.pool, step("over_a").deps(&["a"]).map()).await;
    assert_eq!(
        refusal(&db.pool, step("over_two").deps(&["a", "b"]).map()).await,
        "PF004: map step \"over_two\" depends on 2 steps (a, b); a map runs over the list of one"
    );
    let pairs = [("a", "join"), ("b", "join"), ("c", "join"), ("a", "over_a")];
    assert_eq!(
        edges(&db.pool).await,
        pairs.map(|(d, s)| (d.to_owned(), s.to_owned()))
    );
    let feeding: Vec<String> =
        sqlx::query_scalar("select step_slug from pgflow.steps where feeds_map")
            .fetch_all(&db.pool)
            .await
            .expect("steps can be read");
    assert_eq!(feeding, ["a"]);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn the_same_step_again_is_returned_as_it_is_stored() {
    let db = TestDb::new().await;
    let steps = [
        step("a"),
        step("b"),
        step("c")
            .deps(&["a", "b"])
            .timeout(7)
            .required(json!({"a": 1})),
    ];
    flow(&db.pool, &steps).await;
    flow(&db.pool, &steps).await;
    let other_options = step("c")
        .deps(&["b", "a"])
        .timeout(8)
        .max_attempts(9)
        .start_delay(10)
        .required(json!({"a": 1}));
    let row = add(&db.pool, other_options).await;
    assert_eq!(row.get::<i32, _>("opt_timeout"), 7);
    assert_eq!(row.get::<Option<i32>, _>("opt_max_attempts"), None);
    assert_eq!(row.get::<Option<i32>, _>("opt_start_delay"), None);
    assert_eq!(count(&db.pool, "pgflow.steps").await, 3);
    assert_eq!(count(&db.pool, "pgflow.deps").await, 2);
    assert_invariants(&db.pool).await;
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
            step("c").forbidden(json!(null)),
            "step \"c\": a condition is a JSON object",
        ),
        (
            step("c").map().required(json!({})),
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
async fn a_map_that_depends_on_a_step_may_have_a_condition() {
    let db = TestDb::new().await;
    flow(&db.pool, &[step("a")]).await;
    add(
        &db.pool,
        step("b").deps(&["a"]).map().required(json!({"a": [1]})),
    )
    .await;
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
