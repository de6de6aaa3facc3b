//! The differences that make another shape, and those that do not.

use serde_json::{Value, json};

use super::{answer, definition, ensure, verified};
use crate::support::TestDb;
use crate::support::flows::{Step, shape, start, step};
use crate::support::invariants::assert_invariants;

fn stored() -> Vec<Step> {
    vec![
        step("a"),
        step("b").required(json!({"x": 1})),
        step("c").deps(&["a"]).map(),
        step("d").deps(&["a", "b"]),
    ]
}

/// The lines of the mismatch between the stored flow and these steps; the database does not change.
async fn differences(steps: &[Step]) -> Vec<String> {
    let db = TestDb::new().await;
    assert_eq!(answer(&db.pool, &stored()).await["status"], "compiled");
    start(&db.pool, "orders", json!({"x": 1})).await;
    let before = definition(&db.pool).await;
    let answer = answer(&db.pool, steps).await;
    assert_eq!(answer["status"], "mismatch");
    assert_eq!(answer["mismatch_kind"], "shape");
    assert_eq!(definition(&db.pool).await, before);
    assert_invariants(&db.pool).await;
    serde_json::from_value(answer["differences"].clone()).expect("lines")
}

#[tokio::test]
async fn each_structural_difference_has_a_line() {
    let steps = [
        step("a").when_unmet("fail").when_exhausted("skip-cascade"),
        step("b")
            .required(json!({"x": 2}))
            .forbidden(json!({"y": {}})),
        step("c").deps(&["a"]),
        step("d").deps(&["a", "c"]),
    ];
    assert_eq!(
        differences(&steps).await,
        [
            r#"step "a", when_unmet: "fail" in the code, "skip" in the database"#,
            r#"step "a", when_exhausted: "skip-cascade" in the code, "fail" in the database"#,
            r#"step "b", if: {"x": 2} in the code, {"x": 1} in the database"#,
            r#"step "b", if_not: {"y": {}} in the code, none in the database"#,
            r#"step "c": depends_on = [a] in the code, map = a in the database"#,
            r#"step "d": depends_on = [a, c] in the code, depends_on = [a, b] in the database"#,
        ],
        "in the words of the attributes"
    );
}

#[tokio::test]
async fn what_a_step_runs_after_is_written_as_its_attribute_says_it() {
    let steps = [
        step("a").map(),
        step("b"),
        step("c").deps(&["b"]).map(),
        step("d"),
    ];
    assert_eq!(
        differences(&steps).await,
        [
            r#"step "a": map = input in the code, a root step in the database"#,
            r#"step "b", if: none in the code, {"x": 1} in the database"#,
            r#"step "c": map = b in the code, map = a in the database"#,
            r#"step "d": a root step in the code, depends_on = [a, b] in the database"#,
        ]
    );
}

#[tokio::test]
async fn a_missing_step_has_a_line() {
    assert_eq!(
        differences(&stored()[..3]).await,
        [
            "number of steps: 3 in the code, 4 in the database",
            r#"step 3: missing in the code, "d" in the database"#,
        ]
    );
}

#[tokio::test]
async fn a_new_step_has_a_line() {
    let mut steps = stored();
    steps.push(step("e"));
    assert_eq!(
        differences(&steps).await,
        [
            "number of steps: 5 in the code, 4 in the database",
            r#"step 4: "e" in the code, missing in the database"#,
        ]
    );
}

#[tokio::test]
async fn steps_in_another_order_are_another_shape() {
    let mut steps = stored();
    steps.swap(0, 1);
    assert_eq!(
        differences(&steps).await,
        [
            r#"step 0: "b" in the code, "a" in the database"#,
            r#"step 1: "a" in the code, "b" in the database"#,
        ]
    );
}

#[tokio::test]
async fn the_order_of_dependencies_does_not_count() {
    let db = TestDb::new().await;
    let mut shape = shape(&stored());
    shape["steps"][3]["dependencies"] = json!(["b", "a"]);
    for status in ["compiled", "verified"] {
        let answer = ensure(&db.pool, "orders", &shape).await.expect("an answer");
        assert_eq!(answer["status"], status);
    }
    assert_eq!(answer(&db.pool, &stored()).await, verified());
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_flow_whose_options_were_tuned_in_the_database_is_still_verified() {
    let db = TestDb::new().await;
    let steps = [step("z"), step("y").deps(&["z"])];
    answer(&db.pool, &steps).await;
    // The row moves: neither the table's order nor the slugs' is that of the steps.
    sqlx::query("update pgflow.steps set opt_timeout = 9 where step_slug = 'z'")
        .execute(&db.pool)
        .await
        .expect("tuned");
    assert_eq!(answer(&db.pool, &steps).await, verified());
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn options_are_reported_and_not_applied() {
    let db = TestDb::new().await;
    answer(
        &db.pool,
        &[step("a").timeout(9), step("b").start_delay(1), step("c")],
    )
    .await;
    let before = definition(&db.pool).await;
    let mut changed: Value = shape(&[
        step("a").timeout(10).max_attempts(4).base_delay(5),
        step("b").start_delay(2),
        step("c").start_delay(3),
    ]);
    changed["options"] = json!({"maxAttempts": 3, "timeout": 61});
    let answer = ensure(&db.pool, "orders", &changed)
        .await
        .expect("an answer");
    assert_eq!(answer["status"], "verified");
    assert_eq!(answer["differences"], json!([]));
    assert_eq!(
        answer["options_differ"],
        json!([
            "flow, timeout: 61 s in the code, 60 s in the database",
            "step \"a\", base_delay: 5 s in the code, inherited in the database",
            "step \"a\", max_attempts: 4 in the code, inherited in the database",
            "step \"a\", timeout: 10 s in the code, 9 s in the database",
            "step \"b\", start_delay: 2 s in the code, 1 s in the database",
            "step \"c\", start_delay: 3 s in the code, none in the database",
        ])
    );
    assert_eq!(definition(&db.pool).await, before);
    assert_invariants(&db.pool).await;
}
