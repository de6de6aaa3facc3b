//! Workers that start at once: one compiles, the others verify, and a queue name has one owner.

use std::collections::BTreeMap;

use serde_json::Value;
use sqlx::postgres::{PgExecutor, PgPool};
use tokio::task::JoinSet;

use crate::support::TestDb;
use crate::support::flows::{define, raw_claim, shape, step, worker};
use crate::support::invariants::assert_invariants;
use crate::support::rows::{count, raised};
use crate::support::sessions::until_blocked;

fn shape_of_two() -> Value {
    shape(&[step("a"), step("b").deps(&["a"])])
}

async fn ensure(db: impl PgExecutor<'_>, flow: &str) -> sqlx::Result<String> {
    sqlx::query_scalar("select pgflow.ensure_flow_compiled($1, $2) ->> 'status'")
        .bind(flow)
        .bind(shape_of_two())
        .fetch_one(db)
        .await
}

async fn flows_and_queues(pool: &PgPool) -> (Vec<String>, Vec<String>) {
    let flows = sqlx::query_scalar("select flow_slug from pgflow.flows order by 1");
    let queues = sqlx::query_scalar("select queue_name::text from pgmq.meta order by 1");
    (
        flows.fetch_all(pool).await.expect("flows can be read"),
        queues.fetch_all(pool).await.expect("queues can be read"),
    )
}

fn one(name: &str) -> Vec<String> {
    vec![name.to_owned()]
}

#[tokio::test]
async fn the_second_of_two_compilations_verifies() {
    let db = TestDb::new().await;
    let mut first = db.pool.begin().await.expect("a first session");
    assert_eq!(
        ensure(&mut *first, "orders").await.expect("an answer"),
        "compiled"
    );
    let second = until_blocked(&db.pool, |mut second| async move {
        ensure(&mut *second, "orders").await
    })
    .await;
    first.commit().await.expect("committed");
    let second = second.await.expect("answered");
    assert_eq!(second.expect("an answer"), "verified");
    assert_eq!(count(&db.pool, "pgflow.steps").await, 2);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_compilation_takes_over_when_the_other_one_is_undone() {
    let db = TestDb::new().await;
    let mut first = db.pool.begin().await.expect("a first session");
    assert_eq!(
        ensure(&mut *first, "orders").await.expect("an answer"),
        "compiled"
    );
    let second = until_blocked(&db.pool, |mut second| async move {
        ensure(&mut *second, "Orders").await
    })
    .await;
    first.rollback().await.expect("undone");
    let second = second.await.expect("answered");
    assert_eq!(second.expect("an answer"), "compiled");
    assert_eq!(
        flows_and_queues(&db.pool).await,
        (one("Orders"), one("orders"))
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn of_two_flows_that_want_one_queue_name_the_second_is_refused() {
    let db = TestDb::new().await;
    let mut first = db.pool.begin().await.expect("a first session");
    assert_eq!(
        ensure(&mut *first, "orders").await.expect("an answer"),
        "compiled"
    );
    let second = until_blocked(&db.pool, |mut second| async move {
        ensure(&mut *second, "Orders").await
    })
    .await;
    first.commit().await.expect("committed");
    assert_eq!(
        raised(second.await.expect("answered")),
        "PF006: flow \"Orders\" differs from flow \"orders\" only in case"
    );
    assert_eq!(
        flows_and_queues(&db.pool).await,
        (one("orders"), one("orders"))
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn of_two_flows_created_at_once_with_one_queue_name_the_second_is_refused() {
    let db = TestDb::new().await;
    let mut first = db.pool.begin().await.expect("a first session");
    sqlx::query("select pgflow.create_flow('orders')")
        .execute(&mut *first)
        .await
        .expect("created");
    let second = until_blocked(&db.pool, |mut second| async move {
        sqlx::query("select pgflow.create_flow('Orders')")
            .execute(&mut *second)
            .await
            .map(drop)
    })
    .await;
    first.commit().await.expect("committed");
    assert_eq!(
        raised(second.await.expect("answered")),
        "PF006: flow \"Orders\" differs from flow \"orders\" only in case"
    );
    assert_eq!(
        flows_and_queues(&db.pool).await,
        (one("orders"), one("orders"))
    );
    assert_invariants(&db.pool).await;
}

/// Returns the answers of 16 concurrent starts, with their counts.
async fn sixteen_starts(pool: &PgPool, flows: [&'static str; 2]) -> BTreeMap<String, usize> {
    let mut starts = JoinSet::new();
    for n in 0..16 {
        let pool = pool.clone();
        starts.spawn(async move {
            match ensure(&pool, flows[n % 2]).await {
                Ok(status) => status,
                refused => raised(refused).chars().take("PF006".len()).collect(),
            }
        });
    }
    let mut answers = BTreeMap::new();
    for answer in starts.join_all().await {
        *answers.entry(answer).or_default() += 1;
    }
    answers
}

#[tokio::test]
async fn of_16_starts_at_once_one_compiles_and_the_others_verify() {
    let db = TestDb::new().await;
    let answers = sixteen_starts(&db.pool, ["orders", "orders"]).await;
    assert_eq!(
        answers,
        BTreeMap::from([("compiled".to_owned(), 1), ("verified".to_owned(), 15)])
    );
    assert_eq!(
        flows_and_queues(&db.pool).await,
        (one("orders"), one("orders"))
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn of_16_starts_of_two_flows_with_one_queue_name_one_flow_wins() {
    let db = TestDb::new().await;
    let answers = sixteen_starts(&db.pool, ["orders", "Orders"]).await;
    let expected = [("PF006", 8), ("compiled", 1), ("verified", 7)];
    assert_eq!(
        answers,
        expected.map(|(answer, n)| (answer.to_owned(), n)).into()
    );
    let (flows, queues) = flows_and_queues(&db.pool).await;
    assert_eq!((flows.len(), queues), (1, one("orders")));
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_worker_that_registers_while_its_function_is_disabled_is_refused() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[]).await;
    let first = worker(&db.pool, "orders").await;
    sqlx::query("select pgmq.send('orders', '{}')")
        .execute(&db.pool)
        .await
        .expect("sent");
    let mut claiming = db.pool.begin().await.expect("a first session");
    assert_eq!(
        raw_claim(&mut *claiming, first, 1).await.len(),
        1,
        "a fatal answer"
    );
    let registering = until_blocked(&db.pool, |mut second| async move {
        sqlx::query(
            "select pgflow.register_worker(gen_random_uuid(), 'test-worker', 'orders', null, 'orders', '{}')",
        )
        .execute(&mut *second)
        .await
        .map(drop)
    })
    .await;
    claiming.commit().await.expect("committed");
    let refusal = raised(registering.await.expect("answered"));
    assert!(
        refusal.starts_with("PF007: worker function \"test-worker\" is disabled"),
        "{refusal}"
    );
    assert_eq!(count(&db.pool, "pgflow.workers").await, 1);
    assert_invariants(&db.pool).await;
}
