//! Flows with step queues that start at once: one compiles, and a queue has one owner.

use std::collections::BTreeMap;

use serde_json::Value;
use sqlx::postgres::PgPool;
use sqlx::{AssertSqlSafe, PgConnection};
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::sql::stored::unchanged;
use crate::support::TestDb;
use crate::support::flows::{FUNCTION, Step, define_with_step_queues, shape, step};
use crate::support::invariants::assert_invariants;
use crate::support::rows::{count, raised};
use crate::support::sessions::until_blocked;

pub(super) fn two() -> Vec<Step> {
    vec![step("a"), step("b").deps(&["a"])]
}

pub(super) async fn ensure(session: &mut PgConnection, steps: &[Step]) -> sqlx::Result<Value> {
    sqlx::query_scalar("select pgflow.ensure_flow_compiled('orders', $1, 'step')")
        .bind(shape(steps))
        .fetch_one(session)
        .await
}

/// The status that the database answers.
pub(super) async fn status(session: &mut PgConnection, steps: &[Step]) -> sqlx::Result<String> {
    let answer = ensure(session, steps).await?;
    Ok(answer["status"].as_str().expect("a status").to_owned())
}

pub(super) async fn register(session: &mut PgConnection, step: &str) -> sqlx::Result<Uuid> {
    let id = Uuid::now_v7();
    sqlx::query("select pgflow.register_worker($1, $2, 'orders', $3, 'orders__' || $3, '{}')")
        .bind(id)
        .bind(FUNCTION)
        .bind(step)
        .execute(session)
        .await?;
    Ok(id)
}

/// A whole start, as a worker makes it, of the worker of one step: the definition, the function,
/// the worker, in one transaction.
pub(super) async fn start_up(pool: &PgPool, steps: &[Step], step: &str) -> sqlx::Result<String> {
    let mut session = pool.begin().await?;
    let status = status(&mut session, steps).await?;
    if status != "draining" {
        track(&mut session).await;
        register(&mut session, step).await?;
    }
    session.commit().await?;
    Ok(status)
}

pub(super) async fn track(session: &mut PgConnection) {
    sqlx::query("select pgflow.track_worker_function($1)")
        .bind(FUNCTION)
        .execute(session)
        .await
        .expect("tracked");
}

async fn execute(session: &mut PgConnection, sql: &str) {
    sqlx::raw_sql(AssertSqlSafe(sql))
        .execute(session)
        .await
        .expect("it can be done");
}

pub(super) async fn queues(pool: &PgPool) -> Vec<String> {
    sqlx::query_scalar("select queue_name::text from pgmq.meta order by queue_name collate \"C\"")
        .fetch_all(pool)
        .await
        .expect("queues can be read")
}

#[tokio::test(flavor = "multi_thread")]
async fn of_16_whole_starts_at_once_one_compiles_and_all_register() {
    let db = TestDb::new().await;
    let mut starts = JoinSet::new();
    for n in 0..16 {
        let pool = db.pool.clone();
        starts.spawn(async move {
            start_up(&pool, &two(), ["a", "b"][n % 2])
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
        BTreeMap::from([("compiled".to_owned(), 1), ("verified".to_owned(), 15)])
    );
    assert_eq!(queues(&db.pool).await, ["orders__a", "orders__b"]);
    assert_eq!(count(&db.pool, "pgflow.steps").await, 2);
    assert_eq!(count(&db.pool, "pgflow.workers").await, 16);
    assert_invariants(&db.pool).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_16_starts_in_two_queue_modes_one_mode_wins_and_the_other_is_told() {
    let db = TestDb::new().await;
    let mut starts = JoinSet::new();
    for n in 0..16 {
        let pool = db.pool.clone();
        starts.spawn(async move {
            let mode = ["flow", "step"][n % 2];
            let answer: Value =
                sqlx::query_scalar("select pgflow.ensure_flow_compiled('orders', $1, $2)")
                    .bind(shape(&two()))
                    .bind(mode)
                    .fetch_one(&pool)
                    .await
                    .expect("an answer");
            format!(
                "{} {}",
                answer["status"].as_str().expect("a status"),
                answer["mismatch_kind"]
            )
        });
    }
    let mut answers: BTreeMap<String, usize> = BTreeMap::new();
    for answer in starts.join_all().await {
        *answers.entry(answer).or_default() += 1;
    }
    let expected = [
        ("compiled null", 1),
        ("mismatch \"routing\"", 8),
        ("verified null", 7),
    ];
    assert_eq!(
        answers,
        expected.map(|(answer, n)| (answer.to_owned(), n)).into()
    );
    let queues = queues(&db.pool).await;
    assert!(
        queues == ["orders"] || queues == ["orders__a", "orders__b"],
        "{queues:?}"
    );
    assert_invariants(&db.pool).await;
}

/// Lets a session take the last queue name of flow `orders`, waits until a start of that flow waits
/// for it, and returns its answer once the session has committed or gone back.
async fn after(db: &TestDb, taking: &str, commits: bool) -> sqlx::Result<String> {
    let mut first = db.pool.begin().await.expect("a first session");
    execute(&mut first, taking).await;
    let second = until_blocked(&db.pool, |mut second| async move {
        status(&mut second, &two()).await
    })
    .await;
    if commits {
        first.commit().await.expect("committed");
    } else {
        first.rollback().await.expect("undone");
    }
    second.await.expect("answered")
}

#[tokio::test]
async fn a_start_waits_for_a_foreign_queue_of_its_name_and_is_refused_without_leaving_another() {
    let db = TestDb::new().await;
    assert_eq!(
        raised(after(&db, "select pgmq.create('orders__b')", true).await),
        "PF006: flow \"orders\": a queue \"orders__b\" exists, and no flow owns it"
    );
    assert_eq!(queues(&db.pool).await, ["orders__b"]);
    assert_eq!(count(&db.pool, "pgflow.flows").await, 0);
}

#[tokio::test]
async fn a_start_whose_name_a_foreign_queue_gave_back_compiles() {
    let db = TestDb::new().await;
    let answer = after(&db, "select pgmq.create('orders__b')", false).await;
    assert_eq!(answer.expect("an answer"), "compiled");
    assert_eq!(queues(&db.pool).await, ["orders__a", "orders__b"]);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_start_waits_for_a_foreign_queue_in_another_spelling_too() {
    let db = TestDb::new().await;
    assert_eq!(
        raised(after(&db, "select pgmq.create('Orders__B')", true).await),
        "PF006: flow \"orders\": somebody else has created queue \"orders__b\" at the same moment"
    );
    assert_eq!(queues(&db.pool).await, ["Orders__B"]);
    assert_eq!(count(&db.pool, "pgflow.flows").await, 0);
}

#[tokio::test]
async fn a_foreign_queue_that_comes_between_the_check_and_the_creation_is_not_adopted() {
    let db = TestDb::new().await;
    sqlx::raw_sql(
        "alter function pgmq.create(text) rename to really;
         create function pgmq.create(queue_name text) returns void language plpgsql as $$
         begin
             if queue_name = 'orders__b' then
                 perform pgmq.really('Orders__B');
             end if;
             perform pgmq.really(queue_name);
         end
         $$",
    )
    .execute(&db.pool)
    .await
    .expect("somebody else who is quick");
    let mut session = db.pool.acquire().await.expect("a session");
    assert_eq!(
        raised(unchanged(&db.pool, ensure(&mut session, &two())).await),
        "PF006: flow \"orders\": somebody else has created queue \"orders__b\" at the same moment, as \"Orders__B\""
    );
}

#[tokio::test]
async fn of_two_flows_that_route_to_one_queue_the_second_is_refused() {
    let db = TestDb::new().await;
    define_with_step_queues(&db.pool, "shop", &[step("x")]).await;
    // Valid slugs never derive one name for two flows; somebody who writes routes manually can.
    let by_hand = "select pgflow._lock_definitions();
        select pgmq.create('orders__b');
        update pgflow.steps set queue_name = 'orders__b' where flow_slug = 'shop'";
    assert_eq!(
        raised(after(&db, by_hand, true).await),
        "PF006: flow \"orders\": queue \"orders__b\" already belongs to flow \"shop\", step \"x\""
    );
    assert_eq!(queues(&db.pool).await, ["orders__b", "shop__x"]);
    assert_eq!(count(&db.pool, "pgflow.flows").await, 1);
}

#[tokio::test]
async fn a_foreign_queue_that_comes_second_waits_and_finds_the_flows_own() {
    let db = TestDb::new().await;
    let mut first = db.pool.begin().await.expect("a first session");
    assert_eq!(
        status(&mut first, &two()).await.expect("an answer"),
        "compiled"
    );
    let second = until_blocked(&db.pool, |mut second| async move {
        sqlx::query("select pgmq.create('orders__b')")
            .execute(&mut *second)
            .await
            .map(drop)
    })
    .await;
    first.commit().await.expect("committed");
    second
        .await
        .expect("answered")
        .expect("PGMQ finds it there already");
    assert_eq!(queues(&db.pool).await, ["orders__a", "orders__b"]);
    let mut session = db.pool.acquire().await.expect("a session");
    let verified = unchanged(&db.pool, status(&mut session, &two())).await;
    assert_eq!(verified.expect("an answer"), "verified");
}
