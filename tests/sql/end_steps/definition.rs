//! The definition of end steps: what is stored, what is refused, and what counts as another shape.

use serde_json::{Value, json};
use sqlx::PgPool;

use crate::support::TestDb;
use crate::support::flows::{Step, define, shape, step};
use crate::support::invariants::assert_invariants;
use crate::support::rows::raised;

async fn ensure(pool: &PgPool, steps: &[Step]) -> Value {
    sqlx::query_scalar("select pgflow.ensure_flow_compiled('orders', $1)")
        .bind(shape(steps))
        .fetch_one(pool)
        .await
        .expect("an answer")
}

#[tokio::test]
async fn what_can_not_be_an_end_step_is_refused() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("a"), step("tidy").on("end")]).await;
    let alone = |end: &str| {
        format!(
            "PF004: step \"x\" runs when the run has ended ({end}), so it can have no dependencies, no map, no condition and no mode"
        )
    };
    for (refused, message) in [
        (
            step("x").on("success"),
            "PF004: step \"x\": runs_on is \"success\"; it must be \"failure\" or \"end\""
                .to_owned(),
        ),
        (step("x").on("failure").deps(&["a"]), alone("failure")),
        (step("x").on("failure").map(), alone("failure")),
        (
            step("x").on("failure").required(json!({})),
            alone("failure"),
        ),
        (
            step("x").on("failure").forbidden(json!({})),
            alone("failure"),
        ),
        (step("x").on("end").when_unmet("fail"), alone("end")),
        (step("x").on("end").when_exhausted("skip"), alone("end")),
        (
            step("x").on("end"),
            "PF004: steps \"tidy\" and \"x\" of flow \"orders\" both run on end".to_owned(),
        ),
        (
            step("x").deps(&["a", "tidy"]),
            "PF004: step \"x\" depends on step \"tidy\", which runs when the run has ended"
                .to_owned(),
        ),
        (
            step("x").deps(&["tidy"]).map(),
            "PF004: step \"x\" depends on step \"tidy\", which runs when the run has ended"
                .to_owned(),
        ),
        (
            step("tidy"),
            "PF004: step \"tidy\" of flow \"orders\" is defined already, with another structure"
                .to_owned(),
        ),
        (
            step("a").on("failure"),
            "PF004: step \"a\" of flow \"orders\" is defined already, with another structure"
                .to_owned(),
        ),
    ] {
        assert_eq!(raised(refused.add(&db.pool, "orders").await), message);
    }
    // The same again is the same, and the other one is free.
    step("tidy")
        .on("end")
        .add(&db.pool, "orders")
        .await
        .expect("it is stored");
    step("x")
        .on("failure")
        .max_attempts(7)
        .start_delay(3)
        .add(&db.pool, "orders")
        .await
        .expect("it can be added");
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn the_table_refuses_what_no_call_would_store() {
    let db = TestDb::new().await;
    define(
        &db.pool,
        "orders",
        &[
            step("a"),
            step("tidy").on("end"),
            step("alarm").on("failure"),
        ],
    )
    .await;
    for (change, constraint) in [
        (
            "update pgflow.steps set runs_on = 'never' where step_slug = 'a'",
            "runs_on_is_valid",
        ),
        (
            "update pgflow.steps set runs_on = 'end' where step_slug = 'alarm'",
            "idx_steps_runs_on",
        ),
        (
            "update pgflow.steps set step_type = 'map' where step_slug = 'tidy'",
            "end_step_stands_alone",
        ),
        (
            "update pgflow.steps set deps_count = 1 where step_slug = 'tidy'",
            "end_step_stands_alone",
        ),
        (
            "update pgflow.steps set feeds_map = true where step_slug = 'tidy'",
            "end_step_stands_alone",
        ),
        (
            "update pgflow.steps set when_exhausted = 'skip' where step_slug = 'tidy'",
            "end_step_stands_alone",
        ),
        (
            "update pgflow.steps set when_unmet = 'fail' where step_slug = 'tidy'",
            "end_step_stands_alone",
        ),
        (
            "update pgflow.steps set required_input_pattern = '{}' where step_slug = 'tidy'",
            "end_step_stands_alone",
        ),
        (
            "update pgflow.steps set forbidden_input_pattern = '{}' where step_slug = 'tidy'",
            "end_step_stands_alone",
        ),
    ] {
        let error = sqlx::query(change)
            .execute(&db.pool)
            .await
            .expect_err("refused");
        let error = error.as_database_error().expect("Postgres raised it");
        assert_eq!(error.constraint(), Some(constraint), "{change}");
    }
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn an_end_step_is_part_of_the_shape() {
    let db = TestDb::new().await;
    let stored = [step("a"), step("tidy").on("end")];
    assert_eq!(ensure(&db.pool, &stored).await["status"], "compiled");
    assert_eq!(ensure(&db.pool, &stored).await["status"], "verified");
    for (steps, difference) in [
        (
            vec![step("a"), step("tidy").on("failure")],
            r#"step "tidy", on: "failure" in the code, "end" in the database"#,
        ),
        (
            vec![step("a"), step("tidy")],
            r#"step "tidy", on: nothing in the code, "end" in the database"#,
        ),
        (
            vec![step("a").on("failure"), step("tidy").on("end")],
            r#"step "a", on: "failure" in the code, nothing in the database"#,
        ),
        (
            vec![
                step("a"),
                step("tidy").on("end"),
                step("alarm").on("failure"),
            ],
            r#"step 2: "alarm" in the code, missing in the database"#,
        ),
    ] {
        let answer = ensure(&db.pool, &steps).await;
        assert_eq!(answer["status"], "mismatch");
        let lines: Vec<String> =
            serde_json::from_value(answer["differences"].clone()).expect("lines");
        assert!(lines.contains(&difference.to_owned()), "{lines:?}");
    }
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_shape_says_it_in_a_text() {
    let db = TestDb::new().await;
    for (wrong, message) in [
        (
            json!(1),
            "PF004: flow \"orders\": a step of the shape lacks a part or has one of a wrong type",
        ),
        (
            json!(null),
            "PF004: flow \"orders\": a step of the shape lacks a part or has one of a wrong type",
        ),
        (
            json!("START"),
            "PF004: step \"a\": runs_on is \"START\"; it must be \"failure\" or \"end\"",
        ),
    ] {
        let mut shape = shape(&[step("a")]);
        shape["steps"][0]["runsOn"] = wrong;
        let answer = sqlx::query("select pgflow.ensure_flow_compiled('orders', $1)")
            .bind(shape)
            .fetch_one(&db.pool)
            .await;
        assert_eq!(raised(answer), message);
    }
    assert_invariants(&db.pool).await;
}
