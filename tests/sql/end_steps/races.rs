//! Two sessions that end one run: the end steps start once, with the one that ends it.

use serde_json::json;

use crate::support::flows::{claim, claim_one, complete, fail, start, step};
use crate::support::invariants::assert_invariants;
use crate::support::rows::{messages, run};
use crate::support::runs::{database_with, outline};
use crate::support::sessions::until_blocked;

#[tokio::test]
async fn two_completions_that_end_a_run_together_start_it_once() {
    let (db, worker) = database_with(&[step("a"), step("b"), step("tidy").on("end")]).await;
    let run_id = start(&db.pool, "f", json!({})).await;
    let [a, b] = claim(&db.pool, worker, 2)
        .await
        .try_into()
        .expect("two roots");
    let mut first = db.pool.begin().await.expect("a first session");
    complete(&mut *first, &a, json!(1)).await;
    let second = until_blocked(&db.pool, |mut second| async move {
        complete(&mut *second, &b, json!(2)).await
    })
    .await;
    first.commit().await.expect("committed");
    assert_eq!(second.await.expect("completed"), "completed");
    assert_eq!(
        outline(&db.pool, run_id).await,
        "run completed, a completed, b completed, tidy started"
    );
    assert_eq!(messages(&db.pool, "f").await.len(), 1);
    assert_eq!(
        claim_one(&db.pool, worker).await.input["outputs"],
        json!({"a": 1, "b": 2})
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn two_failures_at_once_start_it_once_with_the_first() {
    let steps = [
        step("a").max_attempts(1),
        step("b").max_attempts(1),
        step("alarm").on("failure"),
    ];
    let (db, worker) = database_with(&steps).await;
    let run_id = start(&db.pool, "f", json!({})).await;
    let [a, b] = claim(&db.pool, worker, 2)
        .await
        .try_into()
        .expect("two roots");
    let mut first = db.pool.begin().await.expect("a first session");
    fail(&mut *first, &a, "first").await;
    let second = until_blocked(&db.pool, |mut second| async move {
        fail(&mut *second, &b, "second").await
    })
    .await;
    first.commit().await.expect("committed");
    assert_eq!(second.await.expect("answered"), "cancelled");
    assert_eq!(
        run(&db.pool, run_id).await.error_message.as_deref(),
        Some("first")
    );
    assert_eq!(messages(&db.pool, "f").await.len(), 1);
    assert_eq!(claim_one(&db.pool, worker).await.input["error"], "first");
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn nobody_sees_its_task_before_the_end_of_the_run() {
    let (db, worker) = database_with(&[step("a"), step("tidy").on("end")]).await;
    let run_id = start(&db.pool, "f", json!({})).await;
    let a = claim_one(&db.pool, worker).await;
    let mut ending = db.pool.begin().await.expect("a first session");
    complete(&mut *ending, &a, json!(1)).await;
    assert!(claim(&db.pool, worker, 5).await.is_empty());
    assert_eq!(outline(&db.pool, run_id).await, "run started, a started");
    ending.commit().await.expect("committed");
    let tidy = claim_one(&db.pool, worker).await;
    assert_eq!(run(&db.pool, run_id).await.status, "completed");
    // Two reports of it: one counts.
    let mut first = db.pool.begin().await.expect("a first session");
    complete(&mut *first, &tidy, json!(1)).await;
    let second = until_blocked(&db.pool, |mut second| async move {
        fail(&mut *second, &tidy, "late").await
    })
    .await;
    first.commit().await.expect("committed");
    assert_eq!(second.await.expect("answered"), "completed");
    assert_invariants(&db.pool).await;
}
