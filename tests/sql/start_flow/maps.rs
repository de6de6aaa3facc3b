//! Runs of flows with root maps: the input must be an array, and each of its elements becomes a
//! task.

use serde_json::{Value, json};
use sqlx::Connection;
use sqlx::postgres::PgConnection;

use super::refusal;
use crate::support::TestDb;
use crate::support::events::Events;
use crate::support::flows::{define, start, step};
use crate::support::invariants::assert_invariants;
use crate::support::rows::{count, messages, run, step_state, tasks};

#[tokio::test]
async fn a_root_map_takes_an_array_and_nothing_else() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("one"), step("each").map()]).await;
    for (input, name) in [
        (json!(null), "null"),
        (json!("x"), "a string"),
        (json!(1), "a number"),
        (json!(true), "a boolean"),
        (json!(false), "a boolean"),
        (json!({"0": 1}), "an object"),
        (json!({}), "an object"),
    ] {
        assert_eq!(
            refusal(&db.pool, "orders", Some(input)).await,
            format!(
                "PF005: flow \"orders\" needs an array as its input, because step \"each\" maps over it; it was given {name}"
            )
        );
    }
    assert_eq!(
        refusal(&db.pool, "orders", None).await,
        "PF005: flow \"orders\" was given no input"
    );
    for table in ["pgflow.runs", "pgflow.step_states", "pgflow.step_tasks"] {
        assert_eq!(count(&db.pool, table).await, 0);
    }
    assert!(messages(&db.pool, "orders").await.is_empty());
}

#[tokio::test]
async fn a_list_that_is_too_long_is_refused_and_the_limit_is_told() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("each").map()]).await;
    assert_eq!(
        refusal(&db.pool, "orders", Some(json!(vec![0; 250_001]))).await,
        "PF005: flow \"orders\" needs an array as its input, because step \"each\" maps over it; \
         it was given an array of 250001 elements, of 250000 at most"
    );
    let most: Option<String> = sqlx::query_scalar("select pgflow._map_refusal($1)")
        .bind(json!(vec![0; 250_000]))
        .fetch_one(&db.pool)
        .await
        .expect("judged");
    assert_eq!(most, None);
}

#[tokio::test]
async fn every_root_map_gets_a_task_for_each_element_of_the_top_level() {
    let db = TestDb::new().await;
    let steps = [
        step("one"),
        step("each").map(),
        step("again").map(),
        step("next").deps(&["each"]).map(),
    ];
    define(&db.pool, "orders", &steps).await;
    let elements = json!([1, "1", null, null, {"a": [1, 2]}, [[]], "é", false]);
    let id = start(&db.pool, "orders", elements.clone()).await;
    for (slug, size, deps) in [
        ("one", Some(1), 0),
        ("each", Some(8), 0),
        ("again", Some(8), 0),
        ("next", None, 1),
    ] {
        let state = step_state(&db.pool, id, slug).await;
        let found = (state.initial_tasks, state.remaining_deps);
        assert_eq!(found, (size, deps), "{slug}");
    }
    let inputs: Vec<Value> = sqlx::query_scalar(
        "select input from pgflow.step_tasks where step_slug = 'again' order by task_index",
    )
    .fetch_all(&db.pool)
    .await
    .expect("tasks can be read");
    assert_eq!(json!(inputs), elements);
    assert_eq!(tasks(&db.pool, id, "each").await.len(), 8);
    assert_eq!(messages(&db.pool, "orders").await.len(), 17);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_root_map_is_as_large_as_its_input_and_a_single_step_is_one_task() {
    let db = TestDb::new().await;
    let steps = [step("one"), step("each").map()];
    define(&db.pool, "orders", &steps).await;
    for size in [0, 1, 3, 100] {
        let id = start(&db.pool, "orders", json!(vec!["x"; size])).await;
        for (slug, tasks_of) in [("one", 1), ("each", size)] {
            let state = step_state(&db.pool, id, slug).await;
            let tasks = tasks(&db.pool, id, slug).await.len();
            assert_eq!(tasks, tasks_of, "{slug} of {size}");
            assert_eq!(state.initial_tasks, i32::try_from(tasks_of).ok());
        }
    }
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_flow_of_nothing_but_maps_starts_with_its_roots() {
    let db = TestDb::new().await;
    let steps = [
        step("left").map(),
        step("right").map(),
        step("after_left").deps(&["left"]).map(),
        step("last").deps(&["after_left"]).map(),
    ];
    define(&db.pool, "orders", &steps).await;
    let id = start(&db.pool, "orders", json!(["x", "y"])).await;
    let started = run(&db.pool, id).await;
    assert_eq!(
        (started.status.as_str(), started.remaining_steps),
        ("started", 4)
    );
    for (slug, status, size) in [
        ("left", "started", Some(2)),
        ("right", "started", Some(2)),
        ("after_left", "created", None),
        ("last", "created", None),
    ] {
        let state = step_state(&db.pool, id, slug).await;
        assert_eq!((state.status.as_str(), state.initial_tasks), (status, size));
    }
    assert_eq!(count(&db.pool, "pgflow.step_tasks").await, 4);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn three_maps_over_nothing_end_the_run_at_once_and_it_is_told() {
    let db = TestDb::new().await;
    let steps = [
        step("a").map(),
        step("b").deps(&["a"]).map(),
        step("c").deps(&["b"]).map(),
    ];
    define(&db.pool, "orders", &steps).await;
    let mut events = Events::at_level(&db.pool, "all").await;
    let id = start(&db.pool, "orders", json!([])).await;
    let ended = run(&db.pool, id).await;
    assert_eq!(
        (ended.status.as_str(), ended.output),
        ("completed", Some(json!({"c": []})))
    );
    assert_eq!(
        events.types(&db.pool).await,
        "run:started, step:completed a, step:completed b, step:completed c, run:completed"
    );
    assert_invariants(&db.pool).await;
}

/// Each element is one task with one message, and starting them writes nothing else: what a run
/// costs grows with its tasks alone.
#[tokio::test]
async fn many_elements_are_as_many_tasks_and_no_more_writes_than_that() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("each").map()]).await;
    let mut others = Vec::new();
    for size in [1000, 10_000] {
        let elements: Vec<i32> = (0..size).collect();
        let mut session = PgConnection::connect(&db.url).await.expect("a session");
        let mut session = session.begin().await.expect("a transaction");
        let id = start(&mut *session, "orders", json!(elements)).await;
        let written: Vec<(String, i64, i64)> = sqlx::query_as(
            "select relname::text, n_tup_ins, n_tup_upd from pg_stat_xact_user_tables
             where schemaname in ('pgflow', 'pgmq') and n_tup_ins + n_tup_upd > 0 order by 1",
        )
        .fetch_all(&mut *session)
        .await
        .expect("statistics can be read");
        session.commit().await.expect("the run is kept");

        let (tasks, other): (Vec<_>, Vec<_>) = written
            .into_iter()
            .partition(|(table, ..)| ["q_orders", "step_tasks"].contains(&table.as_str()));
        let size = i64::from(size);
        let expected = ["q_orders", "step_tasks"].map(|table| (table.to_owned(), size, 0));
        assert_eq!(tasks, expected);
        others.push(other);

        let right: i64 = sqlx::query_scalar(
            "select count(*) from pgflow.step_tasks t join pgmq.q_orders q on q.msg_id = t.message_id
             where t.run_id = $1 and t.input = to_jsonb(t.task_index) and q.message ->> 'task_index' = t.task_index::text",
        )
        .bind(id)
        .fetch_one(&db.pool)
        .await
        .expect("tasks can be counted");
        assert_eq!(right, size);
        let state = step_state(&db.pool, id, "each").await;
        assert_eq!(state.remaining_tasks.map(i64::from), Some(size));
    }
    assert_eq!(others[0], others[1], "what is written besides the tasks");
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_chain_of_maps_over_nothing_completes_at_once_however_long() {
    let db = TestDb::new().await;
    let slugs: Vec<String> = (0..60).map(|n| format!("m{n}")).collect();
    let mut steps = vec![step(&slugs[0]).map()];
    for pair in slugs.windows(2) {
        steps.push(step(&pair[1]).deps(&[&pair[0]]).map());
    }
    define(&db.pool, "orders", &steps).await;
    let id = start(&db.pool, "orders", json!([])).await;
    let ended = run(&db.pool, id).await;
    assert_eq!(
        (ended.status.as_str(), ended.remaining_steps),
        ("completed", 0)
    );
    assert_eq!(ended.output, Some(json!({"m59": []})));
    assert_eq!(count(&db.pool, "pgflow.step_tasks").await, 0);
    assert!(messages(&db.pool, "orders").await.is_empty());
    assert_invariants(&db.pool).await;
}
