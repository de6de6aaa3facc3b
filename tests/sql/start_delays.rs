//! Start delays over the life of a step: for its first attempt, counted from when it is ready.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use sqlx::PgPool;

use crate::support::flows::{claim, claim_one, complete, fail, start, step};
use crate::support::invariants::assert_invariants;
use crate::support::rows::{messages, run, show_all, step_state};
use crate::support::runs::{age, database_with, hidden_by, is_backoff, requeue};

/// For how many seconds each step's messages were hidden when they were sent.
async fn delays(pool: &PgPool) -> BTreeMap<String, i64> {
    let messages = messages(pool, "f").await;
    let delays = messages.iter().map(|message| {
        let step = message.body["step_slug"].as_str().expect("a slug");
        (step.to_owned(), message.visible_after(message.enqueued_at))
    });
    delays.collect()
}

#[tokio::test]
async fn each_step_of_a_chain_waits_for_its_own_delay_from_when_it_is_ready() {
    let (db, worker) = database_with(&[
        step("a").start_delay(100),
        step("b").deps(&["a"]).start_delay(200),
        step("c").deps(&["b"]),
        step("d").deps(&["c"]).start_delay(300),
    ])
    .await;
    let run_id = start(&db.pool, "f", json!({})).await;
    for (step, delay) in [("a", 100), ("b", 200), ("c", 0), ("d", 300)] {
        assert_eq!(
            delays(&db.pool).await,
            BTreeMap::from([(step.to_owned(), delay)])
        );
        assert_eq!(step_state(&db.pool, run_id, step).await.status, "started");
        if delay > 0 {
            assert_eq!(claim(&db.pool, worker, 10).await, [], "{step} waits");
            show_all(&db.pool, "f").await;
        }
        complete(&db.pool, &claim_one(&db.pool, worker).await, Value::Null).await;
    }
    assert_eq!(run(&db.pool, run_id).await.status, "completed");
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_retry_waits_for_its_backoff_and_not_for_the_start_delay() {
    let (db, worker) = database_with(&[step("a").start_delay(5000).base_delay(3)]).await;
    start(&db.pool, "f", json!({})).await;
    show_all(&db.pool, "f").await;
    let first = claim_one(&db.pool, worker).await;
    let failing = fail(&db.pool, &first, "again");
    let hidden = hidden_by(&db.pool, "f", first.message_id, failing).await;
    assert!(is_backoff(&hidden, 6), "{hidden:?}");
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_recovered_task_can_be_claimed_at_once_whatever_its_start_delay() {
    let (db, worker) = database_with(&[step("a").start_delay(5000)]).await;
    let run_id = start(&db.pool, "f", json!({})).await;
    show_all(&db.pool, "f").await;
    claim_one(&db.pool, worker).await;
    age(&db.pool, run_id, "a", 3600).await;
    assert_eq!(requeue(&db.pool).await, 1);
    assert_eq!(claim_one(&db.pool, worker).await.attempt, 2);
    assert_invariants(&db.pool).await;
}
