//! `add_step`: what is stored, and what a repeated call leaves as it is. What is refused is in
//! `refusals`.

mod refusals;

use self::refusals::refusal;

use serde_json::{Value, json};
use sqlx::postgres::{PgPool, PgRow};
use sqlx::{AssertSqlSafe, Row};

use crate::support::TestDb;
use crate::support::flows::{Step, define, start, step};
use crate::support::invariants::assert_invariants;
use crate::support::rows::count;

pub(super) async fn flow(pool: &PgPool, steps: &[Step]) {
    define(pool, "orders", steps).await;
}

pub(super) async fn add(pool: &PgPool, step: Step) -> PgRow {
    step.add(pool, "orders")
        .await
        .expect("the step can be added")
}

/// (dependency, step), sorted.
pub(super) async fn edges(pool: &PgPool) -> Vec<(String, String)> {
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
    assert_eq!(count(&db.pool, "pgflow.steps").await, 1);
    assert_eq!(count(&db.pool, "pgflow.deps").await, 0);
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
        .start_delay(3600)
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
    assert_eq!(options, [7, 0, 9, 3600]);
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
    let immediate = add(&db.pool, step("now").start_delay(0)).await;
    assert_eq!(immediate.get::<i32, _>("opt_start_delay"), 0);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn each_mode_can_be_chosen_for_both_occasions() {
    let db = TestDb::new().await;
    flow(&db.pool, &[]).await;
    let modes = ["fail", "skip", "skip-cascade"];
    for (n, unmet) in modes.into_iter().enumerate() {
        for (m, exhausted) in modes.into_iter().enumerate() {
            let step = step(&format!("s{n}x{m}"));
            let row = add(&db.pool, step.when_unmet(unmet).when_exhausted(exhausted)).await;
            let stored: [String; 2] =
                ["when_unmet", "when_exhausted"].map(|column| row.get(column));
            assert_eq!(stored, [unmet, exhausted]);
        }
    }
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn either_pattern_can_stand_alone_on_roots_and_on_dependents() {
    let db = TestDb::new().await;
    flow(&db.pool, &[step("root")]).await;
    let pattern = json!({"root": {"is": ["deep", {"er": null}]}});
    let required = |slug| step(slug).required(pattern.clone());
    let forbidden = |slug| step(slug).forbidden(pattern.clone());
    for (step, expected) in [
        (required("a"), [Some(&pattern), None]),
        (required("b").deps(&["root"]), [Some(&pattern), None]),
        (forbidden("c"), [None, Some(&pattern)]),
        (forbidden("d").deps(&["root"]), [None, Some(&pattern)]),
    ] {
        let row = add(&db.pool, step).await;
        let stored: [Option<Value>; 2] =
            ["required_input_pattern", "forbidden_input_pattern"].map(|column| row.get(column));
        assert_eq!(stored.each_ref().map(Option::as_ref), expected);
    }
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn the_type_of_a_step_is_stored_and_a_map_needs_no_dependency() {
    let db = TestDb::new().await;
    flow(&db.pool, &[step("list")]).await;
    for (call, expected) in [
        (
            "add_step('orders', 'a', step_type => 'single')",
            ("single", 0),
        ),
        ("add_step('orders', 'b', step_type => 'map')", ("map", 0)),
        (
            "add_step('orders', 'c', '{}', step_type => 'map')",
            ("map", 0),
        ),
        (
            "add_step('orders', 'd', null, step_type => 'map')",
            ("map", 0),
        ),
        (
            "add_step('orders', 'e', '{list}', step_type => 'map')",
            ("map", 1),
        ),
    ] {
        let query = format!("select step_type, deps_count from pgflow.{call}");
        let stored: (String, i32) = sqlx::query_as(AssertSqlSafe(query))
            .fetch_one(&db.pool)
            .await
            .expect("the step can be added");
        assert_eq!((stored.0.as_str(), stored.1), expected, "{call}");
    }
    assert_eq!(edges(&db.pool).await, [("list".to_owned(), "e".to_owned())]);
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
    assert_eq!(
        refusal(&db.pool, step("over_three").deps(&["a", "b", "c"]).map()).await,
        "PF004: map step \"over_three\" depends on 3 steps (a, b, c); a map runs over the list of one"
    );
    let counts: Vec<i32> =
        sqlx::query_scalar("select deps_count from pgflow.steps order by step_index")
            .fetch_all(&db.pool)
            .await
            .expect("steps can be read");
    assert_eq!(counts, [0, 0, 0, 3, 0, 1]);
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

/// All that is stored of definitions, and the queues.
async fn everything_defined(pool: &PgPool) -> Vec<String> {
    sqlx::query_scalar(
        "select to_jsonb(f)::text from pgflow.flows f union all select to_jsonb(s)::text from pgflow.steps s
         union all select to_jsonb(d)::text from pgflow.deps d union all select to_jsonb(m)::text from pgmq.meta m
         order by 1",
    )
    .fetch_all(pool)
    .await
    .expect("definitions can be read")
}

#[tokio::test]
async fn a_whole_definition_that_is_replayed_changes_no_row() {
    let db = TestDb::new().await;
    let steps = [
        step("list").timeout(7),
        step("each").deps(&["list"]).map().start_delay(5),
        step("note").required(json!({"list": [1]})).deps(&["list"]),
        step("join").deps(&["each", "note"]).when_exhausted("skip"),
    ];
    flow(&db.pool, &steps).await;
    let before = everything_defined(&db.pool).await;
    assert_eq!(before.len(), 1 + 4 + 4 + 1);
    flow(&db.pool, &steps).await;
    start(&db.pool, "orders", json!({})).await;
    flow(&db.pool, &steps).await;
    assert_eq!(everything_defined(&db.pool).await, before);
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
