//! The mode in a definition: what is refused, and what is compared.

use serde_json::{Value, json};

use super::{execute, tolerant};
use crate::support::TestDb;
use crate::support::flows::{shape, step};
use crate::support::rows::{count, raised};

#[tokio::test]
async fn only_a_map_can_do_without_elements_and_in_one_of_two_ways() {
    let db = TestDb::new().await;
    execute(&db.pool, "select pgflow.create_flow('f')").await;
    assert_eq!(
        raised(step("a").tolerant().add(&db.pool, "f").await.map(|_| ())),
        "PF004: step \"a\": on_element_failure is \"null\", but the step is no map and has no elements"
    );
    let other =
        "select pgflow.add_step('f', 'm', step_type => 'map', on_element_failure => 'none')";
    let refused = sqlx::query(other).execute(&db.pool).await.map(|_| ());
    assert_eq!(
        raised(refused),
        "PF004: step \"m\": on_element_failure is \"none\"; it must be \"fail\" or \"null\""
    );
    assert_eq!(count(&db.pool, "pgflow.steps").await, 0);
    tolerant("m").add(&db.pool, "f").await.expect("added");
    tolerant("m")
        .add(&db.pool, "f")
        .await
        .expect("the same again");
    assert_eq!(
        raised(step("m").map().add(&db.pool, "f").await.map(|_| ())),
        "PF004: step \"m\" of flow \"f\" is defined already, with another structure"
    );
    for (sql, constraint) in [
        (
            "update pgflow.steps set on_element_failure = 'none'",
            "on_element_failure_is_valid",
        ),
        (
            "update pgflow.steps set step_type = 'single'",
            "only_elements_are_tolerated",
        ),
    ] {
        let error = sqlx::query(sql)
            .execute(&db.pool)
            .await
            .expect_err("refused");
        let error = error.into_database_error().expect("Postgres refused it");
        assert_eq!(error.constraint(), Some(constraint));
    }
}

#[tokio::test]
async fn it_is_part_of_the_shape() {
    let db = TestDb::new().await;
    let compile = async |shape: Value| -> Value {
        sqlx::query_scalar("select pgflow.ensure_flow_compiled('f', $1)")
            .bind(shape)
            .fetch_one(&db.pool)
            .await
            .expect("an answer")
    };
    let with = shape(&[tolerant("m"), tolerant("n").deps(&["m"])]);
    let without = shape(&[tolerant("m"), step("n").map().deps(&["m"]).max_attempts(1)]);
    assert_eq!(compile(with.clone()).await["status"], "compiled");
    assert_eq!(compile(with.clone()).await["status"], "verified");
    let mismatch = compile(without.clone()).await;
    assert_eq!(mismatch["status"], "mismatch");
    assert_eq!(
        mismatch["differences"],
        json!(["step \"n\", on_element_failure: \"fail\" in the code, \"null\" in the database"])
    );
    // Left out and `fail` are the same.
    let mut written = without;
    written["steps"][1]["onElementFailure"] = json!("fail");
    assert_eq!(
        compile(written.clone()).await["differences"],
        mismatch["differences"]
    );
    written["steps"][1]["onElementFailure"] = json!(7);
    let refused = sqlx::query("select pgflow.ensure_flow_compiled('f', $1)")
        .bind(&written)
        .execute(&db.pool)
        .await
        .map(|_| ());
    assert_eq!(
        raised(refused),
        "PF004: flow \"f\": a step of the shape lacks a part or has one of a wrong type"
    );
}
