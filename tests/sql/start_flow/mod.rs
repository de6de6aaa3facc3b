//! `start_flow`: inputs, the rows of a new run, and the same run again. Root maps are in `maps`.

mod maps;

use serde_json::{Value, json};
use sqlx::postgres::PgPool;
use uuid::Uuid;

use crate::support::TestDb;
use crate::support::flows::{define, start, step};
use crate::support::invariants::assert_invariants;
use crate::support::rows::{count, messages, raised, run, step_state};

pub(super) async fn refusal(pool: &PgPool, flow: &str, input: Option<Value>) -> String {
    let call = sqlx::query("select pgflow.start_flow($1, $2)")
        .bind(flow)
        .bind(input);
    raised(call.execute(pool).await)
}

async fn start_as(pool: &PgPool, id: Uuid, flow: &str, input: &Value) -> sqlx::Result<Value> {
    sqlx::query_scalar(
        "select to_jsonb(r) from pgflow.start_flow(flow_slug => $1, input => $2, run_id => $3) r",
    )
    .bind(flow)
    .bind(input)
    .bind(id)
    .fetch_one(pool)
    .await
}

#[tokio::test]
async fn a_new_run_has_a_state_for_every_step_and_tasks_for_its_roots() {
    let db = TestDb::new().await;
    let steps = [
        step("left"),
        step("right"),
        step("join").deps(&["left", "right"]),
        step("each").deps(&["left"]).map(),
    ];
    define(&db.pool, "Orders", &steps).await;
    define(&db.pool, "other", &[step("left"), step("more")]).await;
    let id = start(&db.pool, "Orders", json!({"id": 1})).await;

    let started = run(&db.pool, id).await;
    assert_eq!(
        (started.status.as_str(), started.remaining_steps),
        ("started", 4)
    );
    assert_eq!(count(&db.pool, "pgflow.runs").await, 1);
    assert_eq!(count(&db.pool, "pgflow.step_states").await, 4);
    for root in ["left", "right"] {
        let state = step_state(&db.pool, id, root).await;
        assert_eq!(state.status, "started");
        assert_eq!(
            (state.initial_tasks, state.remaining_tasks),
            (Some(1), Some(1))
        );
    }
    let join = step_state(&db.pool, id, "join").await;
    assert_eq!((join.status.as_str(), join.remaining_deps), ("created", 2));
    assert_eq!((join.initial_tasks, join.remaining_tasks), (Some(1), None));
    let each = step_state(&db.pool, id, "each").await;
    assert_eq!((each.status.as_str(), each.remaining_deps), ("created", 1));
    assert_eq!((each.initial_tasks, each.remaining_tasks), (None, None));

    assert_eq!(count(&db.pool, "pgflow.step_tasks").await, 2);
    let bodies: Vec<Value> = messages(&db.pool, "orders")
        .await
        .into_iter()
        .map(|m| m.body)
        .collect();
    let expected = ["left", "right"].map(
        |slug| json!({"flow_slug": "Orders", "run_id": id, "step_slug": slug, "task_index": 0}),
    );
    assert_eq!(bodies, expected);
    assert!(messages(&db.pool, "other").await.is_empty());
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn one_row_returns_with_the_run_as_it_is_now() {
    let db = TestDb::new().await;
    define(&db.pool, "two_roots", &[step("a"), step("b")]).await;
    define(&db.pool, "empty", &[]).await;
    let rows: Vec<Value> = sqlx::query_scalar(
        "select to_jsonb(r) - 'run_id' - 'started_at' from pgflow.start_flow('two_roots', '[0, null, \"\"]') r",
    )
    .fetch_all(&db.pool)
    .await
    .expect("started");
    let expected = json!({
        "flow_slug": "two_roots", "status": "started", "input": [0, null, ""], "output": null, "error_message": null,
        "remaining_steps": 2, "completed_at": null, "failed_at": null,
    });
    assert_eq!(rows, [expected]);
    let status: String =
        sqlx::query_scalar("select status from pgflow.start_flow('empty', 'null')")
            .fetch_one(&db.pool)
            .await
            .expect("started");
    assert_eq!(status, "completed", "nothing is left to do");
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn only_the_run_and_what_started_with_it_have_timestamps() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("a"), step("b").deps(&["a"])]).await;
    start(&db.pool, "orders", json!({})).await;
    let set: Vec<(String, Vec<String>)> = sqlx::query_as(
        "select x.name, array(select key from jsonb_each(x.columns) where key like '%\\_at' and value <> 'null' order by key)
         from (
             select 'the run' as name, to_jsonb(r) as columns from pgflow.runs r
             union all select s.step_slug, to_jsonb(s) from pgflow.step_states s
         ) x
         order by 1",
    )
    .fetch_all(&db.pool)
    .await
    .expect("states can be read");
    let names = |columns: &[&str]| columns.iter().map(|&c| c.to_owned()).collect::<Vec<_>>();
    assert_eq!(
        set,
        [
            ("a".to_owned(), names(&["created_at", "started_at"])),
            ("b".to_owned(), names(&["created_at"])),
            ("the run".to_owned(), names(&["started_at"])),
        ]
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_flow_must_be_defined_and_given_an_input() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("a")]).await;
    for unknown in ["order", "Orders"] {
        assert_eq!(
            refusal(&db.pool, unknown, Some(json!({}))).await,
            format!("PF001: flow \"{unknown}\" is not defined in this database")
        );
    }
    assert_eq!(
        refusal(&db.pool, "orders", None).await,
        "PF005: flow \"orders\" was given no input"
    );
    start(&db.pool, "orders", Value::Null).await;
    assert_eq!(count(&db.pool, "pgflow.runs").await, 1);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_start_delay_hides_the_messages_of_roots() {
    let db = TestDb::new().await;
    let steps = [
        step("now"),
        step("soon").start_delay(300),
        step("later").start_delay(3600),
        step("after").deps(&["now"]).start_delay(7200),
    ];
    define(&db.pool, "orders", &steps).await;
    start(&db.pool, "orders", json!({})).await;
    let mut hidden: Vec<i64> = messages(&db.pool, "orders")
        .await
        .iter()
        .map(|m| m.visible_after(m.enqueued_at))
        .collect();
    hidden.sort_unstable();
    assert_eq!(hidden, [0, 300, 3600]);
    assert_eq!(count(&db.pool, "pgflow.step_tasks").await, 3);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn the_same_run_again_is_the_run_that_exists() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("a")]).await;
    define(&db.pool, "other", &[step("a")]).await;
    let id = Uuid::now_v7();
    let first = start_as(&db.pool, id, "orders", &json!({"id": 1}))
        .await
        .expect("started");
    assert_eq!(first["run_id"], json!(id));
    let again = start_as(&db.pool, id, "orders", &json!({"id": 1}))
        .await
        .expect("found");
    assert_eq!(again, first);
    assert_eq!(
        raised(start_as(&db.pool, id, "orders", &json!({"id": 2})).await),
        format!("PF009: run {id} of flow \"orders\" exists, and was started with another input")
    );
    assert_eq!(
        raised(start_as(&db.pool, id, "other", &json!({})).await),
        format!("PF009: run {id} belongs to flow \"orders\", not to flow \"other\"")
    );
    for table in ["pgflow.runs", "pgflow.step_states", "pgflow.step_tasks"] {
        assert_eq!(count(&db.pool, table).await, 1);
    }
    assert_eq!(messages(&db.pool, "orders").await.len(), 1);
    assert_invariants(&db.pool).await;
}
