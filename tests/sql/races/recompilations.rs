//! Recompilations of a local database, beside workers that start and beside each other: none has
//! the flow with another one.

use std::collections::BTreeMap;

use serde_json::json;
use sqlx::postgres::PgPool;
use tokio::task::JoinSet;

use super::startups::{ensure, queues, register, start_up, status, track, two};
use crate::support::TestDb;
use crate::support::flows::{Step, claim, define_with_step_queues, start, step, step_worker};
use crate::support::invariants::assert_invariants;
use crate::support::rows::{count, raised};
use crate::support::sessions::until_blocked;

fn other() -> Vec<Step> {
    vec![step("a"), step("c").deps(&["a"])]
}

async fn set_local(pool: &PgPool) {
    sqlx::query("select pgflow.set_environment('local')")
        .execute(pool)
        .await
        .expect("set");
}

#[tokio::test]
async fn a_worker_that_starts_before_a_recompilation_is_drained_first() {
    let db = TestDb::new().await;
    set_local(&db.pool).await;
    define_with_step_queues(&db.pool, "orders", &two()).await;
    let mut first = db.pool.begin().await.expect("a first session");
    assert_eq!(
        status(&mut first, &two()).await.expect("an answer"),
        "verified"
    );
    track(&mut first).await;
    let worker = register(&mut first, "a").await.expect("registered");
    let second = until_blocked(&db.pool, |mut second| async move {
        ensure(&mut second, &other()).await
    })
    .await;
    first.commit().await.expect("committed");
    let answer = second.await.expect("answered").expect("an answer");
    assert_eq!(answer["status"], "draining");
    assert_eq!(answer["workers"][0]["worker_id"], json!(worker));
    assert_eq!(queues(&db.pool).await, ["orders__a", "orders__b"]);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_worker_of_the_old_definition_that_starts_during_a_recompilation_finds_another_flow() {
    let db = TestDb::new().await;
    set_local(&db.pool).await;
    define_with_step_queues(&db.pool, "orders", &two()).await;
    let mut first = db.pool.begin().await.expect("a first session");
    assert_eq!(
        status(&mut first, &other()).await.expect("an answer"),
        "recompiled"
    );
    track(&mut first).await;
    let worker = register(&mut first, "c").await.expect("registered");
    let second = until_blocked(&db.pool, |mut second| async move {
        ensure(&mut second, &two()).await
    })
    .await;
    first.commit().await.expect("committed");
    // It is as new as the other one: told apart by nothing, so the later one drains the earlier
    // one.
    let answer = second.await.expect("answered").expect("an answer");
    assert_eq!(answer["status"], "draining");
    assert_eq!(answer["workers"][0]["worker_id"], json!(worker));
    assert_eq!(queues(&db.pool).await, ["orders__a", "orders__c"]);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_registration_that_did_not_ask_for_the_definition_is_waited_for_and_drained() {
    let db = TestDb::new().await;
    set_local(&db.pool).await;
    define_with_step_queues(&db.pool, "orders", &two()).await;
    let mut first = db.pool.begin().await.expect("a first session");
    track(&mut first).await;
    let worker = register(&mut first, "a").await.expect("registered");
    let second = until_blocked(&db.pool, |mut second| async move {
        ensure(&mut second, &other()).await
    })
    .await;
    first.commit().await.expect("committed");
    let answer = second.await.expect("answered").expect("an answer");
    assert_eq!(answer["status"], "draining");
    assert_eq!(answer["workers"][0]["worker_id"], json!(worker));
    assert!(claim(&db.pool, worker, 10).await.is_empty());
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_registration_that_did_not_ask_for_the_definition_and_comes_second_finds_the_new_one() {
    let db = TestDb::new().await;
    set_local(&db.pool).await;
    define_with_step_queues(&db.pool, "orders", &two()).await;
    let mut first = db.pool.begin().await.expect("a first session");
    track(&mut first).await;
    assert_eq!(
        status(&mut first, &other()).await.expect("an answer"),
        "recompiled"
    );
    first.commit().await.expect("committed");
    let mut first = db.pool.begin().await.expect("a first session");
    assert_eq!(
        status(&mut first, &two()).await.expect("an answer"),
        "recompiled"
    );
    let second = until_blocked(&db.pool, |mut second| async move {
        register(&mut second, "c").await
    })
    .await;
    first.commit().await.expect("committed");
    assert_eq!(
        raised(second.await.expect("answered")),
        "PF009: queue \"orders__c\" is no route of flow \"orders\", step \"c\""
    );
    assert_eq!(count(&db.pool, "pgflow.workers").await, 0);
}

#[tokio::test]
async fn of_two_recompilations_to_one_definition_the_second_verifies() {
    let db = TestDb::new().await;
    set_local(&db.pool).await;
    define_with_step_queues(&db.pool, "orders", &two()).await;
    start(&db.pool, "orders", json!({})).await;
    let mut first = db.pool.begin().await.expect("a first session");
    assert_eq!(
        status(&mut first, &other()).await.expect("an answer"),
        "recompiled"
    );
    let second = until_blocked(&db.pool, |mut second| async move {
        status(&mut second, &other()).await
    })
    .await;
    first.commit().await.expect("committed");
    assert_eq!(
        second.await.expect("answered").expect("an answer"),
        "verified"
    );
    assert_eq!(queues(&db.pool).await, ["orders__a", "orders__c"]);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_recompilation_takes_over_when_the_other_one_is_undone() {
    let db = TestDb::new().await;
    set_local(&db.pool).await;
    define_with_step_queues(&db.pool, "orders", &two()).await;
    start(&db.pool, "orders", json!({})).await;
    let mut first = db.pool.begin().await.expect("a first session");
    assert_eq!(
        status(&mut first, &[step("z")]).await.expect("an answer"),
        "recompiled"
    );
    let second = until_blocked(&db.pool, |mut second| async move {
        status(&mut second, &other()).await
    })
    .await;
    first.rollback().await.expect("undone");
    assert_eq!(
        second.await.expect("answered").expect("an answer"),
        "recompiled"
    );
    assert_eq!(queues(&db.pool).await, ["orders__a", "orders__c"]);
    assert_eq!(count(&db.pool, "pgflow.runs").await, 0);
    assert_invariants(&db.pool).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_16_recompilations_at_once_one_recompiles() {
    let db = TestDb::new().await;
    set_local(&db.pool).await;
    define_with_step_queues(&db.pool, "orders", &two()).await;
    start(&db.pool, "orders", json!({})).await;
    let dead = step_worker(&db.pool, "orders", "a").await;
    assert_eq!(claim(&db.pool, dead, 1).await.len(), 1);
    sqlx::query("update pgflow.workers set last_heartbeat_at = '2000-01-01'")
        .execute(&db.pool)
        .await
        .expect("time can pass");
    let mut starts = JoinSet::new();
    for n in 0..16 {
        let pool = db.pool.clone();
        starts.spawn(async move {
            start_up(&pool, &other(), ["a", "c"][n % 2])
                .await
                .expect("started")
        });
    }
    let mut answers: BTreeMap<String, usize> = BTreeMap::new();
    for answer in starts.join_all().await {
        *answers.entry(answer).or_default() += 1;
    }
    assert_eq!(
        answers,
        BTreeMap::from([("recompiled".to_owned(), 1), ("verified".to_owned(), 15)])
    );
    assert_eq!(queues(&db.pool).await, ["orders__a", "orders__c"]);
    assert_eq!(count(&db.pool, "pgflow.runs").await, 0);
    assert_eq!(count(&db.pool, "pgflow.workers").await, 17);
    assert_invariants(&db.pool).await;
}
