//! Starts of runs beside each other, and beside changes of their flow.

use serde_json::{Value, json};
use sqlx::postgres::PgExecutor;
use uuid::Uuid;

use crate::sql::start_flows::{start_many_as, try_start_many};
use crate::support::TestDb;
use crate::support::flows::{define, start, step};
use crate::support::invariants::assert_invariants;
use crate::support::rows::{count, messages, raised, run};
use crate::support::sessions::until_blocked;

/// Starts a run under an id; returns its input.
async fn start_as(db: impl PgExecutor<'_>, id: Uuid, input: Value) -> Value {
    sqlx::query_scalar("select input from pgflow.start_flow('orders', $1, $2)")
        .bind(input)
        .bind(id)
        .fetch_one(db)
        .await
        .expect("started")
}

#[tokio::test]
async fn two_starts_of_one_run_are_one_run() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("a")]).await;
    let id = Uuid::now_v7();
    let mut first = db.pool.begin().await.expect("a first session");
    start_as(&mut *first, id, json!("first")).await;
    let second = until_blocked(&db.pool, move |mut second| async move {
        start_as(&mut *second, id, json!("first")).await
    })
    .await;
    first.commit().await.expect("committed");
    assert_eq!(second.await.expect("answered"), json!("first"));
    for table in ["pgflow.runs", "pgflow.step_states", "pgflow.step_tasks"] {
        assert_eq!(count(&db.pool, table).await, 1, "{table}");
    }
    assert_eq!(messages(&db.pool, "orders").await.len(), 1);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_start_takes_over_when_the_other_one_is_undone() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("a")]).await;
    let id = Uuid::now_v7();
    let mut first = db.pool.begin().await.expect("a first session");
    start_as(&mut *first, id, json!("first")).await;
    let second = until_blocked(&db.pool, move |mut second| async move {
        start_as(&mut *second, id, json!("second")).await
    })
    .await;
    first.rollback().await.expect("undone");
    assert_eq!(second.await.expect("answered"), json!("second"));
    assert_eq!(count(&db.pool, "pgflow.step_tasks").await, 1);
    assert_eq!(messages(&db.pool, "orders").await.len(), 1);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_step_can_not_be_added_while_a_run_is_started() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("a")]).await;
    let mut starting = db.pool.begin().await.expect("a first session");
    let id = start(&mut *starting, "orders", json!({})).await;
    let adding = until_blocked(&db.pool, |mut second| async move {
        step("b")
            .deps(&["a"])
            .add(&mut *second, "orders")
            .await
            .map(drop)
    })
    .await;
    starting.commit().await.expect("committed");
    assert_eq!(
        raised(adding.await.expect("answered")),
        "PF004: flow \"orders\" has runs, so it can not get a new step \"b\""
    );
    assert_eq!(run(&db.pool, id).await.remaining_steps, 1);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_run_that_starts_while_a_step_is_added_waits_and_has_it() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("a")]).await;
    let mut adding = db.pool.begin().await.expect("a first session");
    step("b").add(&mut *adding, "orders").await.expect("added");
    let starting = until_blocked(&db.pool, |mut second| async move {
        start(&mut *second, "orders", json!({})).await
    })
    .await;
    adding.commit().await.expect("committed");
    let id = starting.await.expect("answered");
    assert_eq!(run(&db.pool, id).await.remaining_steps, 2);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn two_batches_that_share_a_run_start_it_once() {
    for is_kept in [true, false] {
        let db = TestDb::new().await;
        define(&db.pool, "orders", &[step("a"), step("each").map()]).await;
        let [own, shared, other] = [Uuid::now_v7(), Uuid::now_v7(), Uuid::now_v7()];
        let mut first = db.pool.begin().await.expect("a first session");
        let runs = [(own, json!([1])), (shared, json!(["same"]))];
        start_many_as(&mut *first, "orders", &runs).await;
        let second = until_blocked(&db.pool, move |mut second| async move {
            let runs = [(other, json!([2])), (shared, json!(["same"]))];
            start_many_as(&mut *second, "orders", &runs).await
        })
        .await;
        let runs = if is_kept {
            first.commit().await.expect("committed");
            3
        } else {
            first.rollback().await.expect("undone");
            2
        };
        let expected = [(other, json!([2])), (shared, json!(["same"]))];
        assert_eq!(second.await.expect("answered"), expected);
        assert_eq!(count(&db.pool, "pgflow.runs").await, runs);
        for table in ["pgflow.step_states", "pgflow.step_tasks"] {
            assert_eq!(count(&db.pool, table).await, 2 * runs, "{table}");
        }
        assert_eq!(
            i64::try_from(messages(&db.pool, "orders").await.len()),
            Ok(2 * runs)
        );
        assert_invariants(&db.pool).await;
    }
}

#[tokio::test]
async fn an_id_that_another_flow_takes_meanwhile_refuses_the_whole_batch() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("a")]).await;
    define(&db.pool, "other", &[step("a")]).await;
    let id = Uuid::now_v7();
    let mut first = db.pool.begin().await.expect("a first session");
    start_many_as(&mut *first, "other", &[(id, json!(1))]).await;
    let second = until_blocked(&db.pool, move |mut second| async move {
        let inputs = [Some(json!(1)), Some(json!(2)), Some(json!(3))];
        let ids = [None, Some(id), None];
        try_start_many(&mut *second, "orders", &inputs, Some(&ids)).await
    })
    .await;
    first.commit().await.expect("committed");
    assert_eq!(
        raised(second.await.expect("answered")),
        format!("PF009: run {id} belongs to flow \"other\", not to flow \"orders\"")
    );
    assert_eq!(count(&db.pool, "pgflow.runs").await, 1);
    assert!(messages(&db.pool, "orders").await.is_empty());
    assert_invariants(&db.pool).await;
}

/// As two callers that repeat the same calls: whoever comes first, neither is refused.
#[tokio::test]
async fn batches_that_name_the_same_runs_in_any_order_wait_and_never_deadlock() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("a")]).await;
    let mut ids = [Uuid::now_v7(), Uuid::now_v7(), Uuid::now_v7()];
    ids.sort();
    // Holds both up in the middle of their work.
    let mut holding = db.pool.begin().await.expect("a first session");
    start_many_as(&mut *holding, "orders", &[(ids[1], json!(0))]).await;
    let mut calls = Vec::new();
    for order in [[0, 1, 2], [2, 1, 0]] {
        let runs = order.map(|n| (ids[n], json!(n)));
        let call = until_blocked(&db.pool, move |mut session| async move {
            start_many_as(&mut *session, "orders", &runs).await
        });
        calls.push((order, call.await));
    }
    holding.rollback().await.expect("undone");
    for (order, call) in calls {
        let expected = order.map(|n| (ids[n], json!(n)));
        assert_eq!(call.await.expect("answered"), expected);
    }
    assert_eq!(count(&db.pool, "pgflow.step_tasks").await, 3);
    assert_eq!(messages(&db.pool, "orders").await.len(), 3);
    assert_invariants(&db.pool).await;
}
