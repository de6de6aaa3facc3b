//! `tune_flow`, and how options of the code reach a local database and are reported in others.

use serde_json::{Value, json};
use sqlx::AssertSqlSafe;
use sqlx::postgres::PgPool;

use crate::support::TestDb;
use crate::support::flows::{define, step};

async fn tune(pool: &PgPool, arguments: &str) -> Result<(), String> {
    let call = format!("select pgflow.tune_flow({arguments})");
    let tuned = sqlx::query(AssertSqlSafe(call)).execute(pool).await;
    tuned.map(drop).map_err(|error| {
        let error = error.into_database_error().expect("Postgres raised it");
        error.code().unwrap_or_default().into_owned()
    })
}

async fn options(pool: &PgPool) -> Value {
    sqlx::query_scalar(
        "select jsonb_build_object('flow', array[f.opt_max_attempts, f.opt_base_delay, f.opt_timeout],
             'step', array[s.opt_max_attempts, s.opt_base_delay, s.opt_timeout, s.opt_start_delay])
         from pgflow.flows f join pgflow.steps s using (flow_slug) where f.flow_slug = 'orders'",
    )
    .fetch_one(pool)
    .await
    .expect("options can be read")
}

/// Returns the answer to a worker's start with a flow of one step, and these options of both.
async fn compile(pool: &PgPool, flow: Value, step: Value) -> Value {
    let shape = json!({
        "options": flow,
        "steps": [{
            "slug": "one", "stepType": "single", "dependencies": [], "whenUnmet": "skip", "whenExhausted": "fail",
            "requiredInputPattern": {"defined": false}, "forbiddenInputPattern": {"defined": false}, "options": step,
        }],
    });
    sqlx::query_scalar("select pgflow.ensure_flow_compiled(flow_slug => 'orders', shape => $1)")
        .bind(shape)
        .fetch_one(pool)
        .await
        .expect("the flow compiles")
}

#[tokio::test]
async fn what_is_given_is_set_and_the_rest_stays() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("one")]).await;
    tune(&db.pool, "'orders', max_attempts => 7").await.unwrap();
    tune(
        &db.pool,
        "'orders', 'one', base_delay => 0, start_delay => 9",
    )
    .await
    .unwrap();
    tune(&db.pool, "'orders', 'one', timeout => 90")
        .await
        .unwrap();
    let expected = json!({"flow": [7, 0, 60], "step": [null, 0, 90, 9]});
    assert_eq!(options(&db.pool).await, expected);
}

#[tokio::test]
async fn what_can_not_be_set_is_refused_and_nothing_changes() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("one")]).await;
    let before = options(&db.pool).await;
    for (arguments, code) in [
        ("'orders'", "PF009"),
        ("'orders', start_delay => 1", "PF009"),
        ("'Orders', timeout => 1", "PF001"),
        ("'orders', 'two', timeout => 1", "PF003"),
        ("'orders', timeout => 0", "PF004"),
        ("'orders', 'one', max_attempts => 0", "PF004"),
        ("'orders', 'one', base_delay => -1", "PF004"),
    ] {
        assert_eq!(
            tune(&db.pool, arguments).await,
            Err(code.to_owned()),
            "{arguments}"
        );
    }
    assert_eq!(options(&db.pool).await, before);
}

#[tokio::test]
async fn options_that_differ_are_news_once_for_each_change() {
    let db = TestDb::new().await;
    compile(&db.pool, json!({}), json!({})).await;
    let news = async |flow: Value| {
        let answer = compile(&db.pool, flow, json!({})).await;
        answer["options_are_news"].clone()
    };
    assert_eq!(news(json!({"timeout": 30})).await, true);
    assert_eq!(news(json!({"timeout": 30})).await, false);
    assert_eq!(news(json!({"timeout": 31})).await, true);
    // Equal again, and then as before: a change each time.
    assert_eq!(news(json!({"timeout": 60})).await, Value::Null);
    assert_eq!(news(json!({"timeout": 31})).await, true);
}

#[tokio::test]
async fn the_updates_that_are_named_make_database_and_code_equal() {
    let db = TestDb::new().await;
    compile(&db.pool, json!({}), json!({})).await;
    let (flow, step) = (
        json!({"timeout": 30, "maxAttempts": 1}),
        json!({"baseDelay": 2, "startDelay": 4}),
    );
    let answer = compile(&db.pool, flow.clone(), step.clone()).await;
    let updates = answer["option_updates"].as_array().unwrap();
    assert_eq!(
        updates[0],
        "update pgflow.flows set opt_max_attempts = 1, opt_timeout = 30 where flow_slug = 'orders'"
    );
    assert_eq!(updates.len(), 2);
    for update in updates {
        let update = update.as_str().unwrap().to_owned();
        sqlx::query(AssertSqlSafe(update))
            .execute(&db.pool)
            .await
            .unwrap();
    }
    assert_eq!(
        compile(&db.pool, flow, step).await["options_differ"],
        json!([])
    );
}

#[tokio::test]
async fn a_local_database_follows_the_code_also_back_to_the_defaults() {
    let db = TestDb::new().await;
    compile(&db.pool, json!({"timeout": 30}), json!({"maxAttempts": 9})).await;
    sqlx::query("select pgflow.set_environment('local')")
        .execute(&db.pool)
        .await
        .unwrap();
    let answer = compile(&db.pool, json!({"baseDelay": 1}), json!({"startDelay": 2})).await;
    assert_eq!(
        (&answer["status"], &answer["options_followed"]),
        (&json!("verified"), &json!(true))
    );
    assert_eq!(answer["options_differ"], json!([]));
    let expected = json!({"flow": [3, 1, 60], "step": [null, null, null, 2]});
    assert_eq!(options(&db.pool).await, expected);
    let again = compile(&db.pool, json!({"baseDelay": 1}), json!({"startDelay": 2})).await;
    assert_eq!(again["options_followed"], Value::Null);
}
