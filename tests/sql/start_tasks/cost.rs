//! The reads of starting tasks: neither the size of their map nor the size of its source list may
//! count.

use serde_json::{Value, json};
use sqlx::postgres::PgConnection;
use sqlx::{Connection, PgTransaction};
use uuid::Uuid;

use crate::support::TestDb;
use crate::support::flows::{claim_one, complete, define, start, step, worker};
use crate::support::invariants::assert_invariants;
use crate::support::rows::messages;
use crate::support::runs::random;

/// Starts tasks in a session of its own, whose counts are its own.
async fn started_by(session: &mut PgTransaction<'_>, worker: Uuid, ids: &[i64]) -> usize {
    sqlx::query("select input from pgflow.start_tasks('orders', $1, $2, 'orders')")
        .bind(ids)
        .bind(worker)
        .fetch_all(&mut **session)
        .await
        .expect("started")
        .len()
}

/// Returns the number of rows that this transaction has read of the tables of runs, and of their
/// large values (TOAST).
async fn rows_read(session: &mut PgTransaction<'_>) -> (i64, i64) {
    sqlx::query_as(
        "select
            coalesce(sum(coalesce(idx_tup_fetch, 0) + seq_tup_read) filter (where schemaname in ('pgflow', 'pgmq')), 0)::bigint,
            coalesce(sum(coalesce(idx_tup_fetch, 0) + seq_tup_read) filter (
                where relid in (
                    select reltoastrelid from pg_class
                    where oid in ('pgflow.runs'::regclass, 'pgflow.step_states'::regclass, 'pgflow.step_tasks'::regclass)
                )
            ), 0)::bigint
         from pg_stat_xact_all_tables",
    )
    .fetch_one(&mut **session)
    .await
    .expect("statistics can be read")
}

/// A list of a hundred objects that hardly compresses: too large to be stored in its row.
fn large_list() -> Vec<Value> {
    let mut random = random("large_list");
    let mut text = || -> String { (0..200).map(|_| random.alphanumeric()).collect() };
    (0..100).map(|n| json!({"n": n, "text": text()})).collect()
}

#[tokio::test]
async fn a_claim_reads_a_few_rows_for_each_of_its_tasks_whatever_the_size_of_their_map() {
    for size in [100, 10_000] {
        let db = TestDb::new().await;
        define(&db.pool, "orders", &[step("each").map()]).await;
        start(&db.pool, "orders", json!(vec![1; size])).await;
        sqlx::query("analyze")
            .execute(&db.pool)
            .await
            .expect("statistics can be taken");
        let worker = worker(&db.pool, "orders").await;
        let messages = messages(&db.pool, "orders").await;
        let mut ids = messages.iter().map(|message| message.id);
        for count in [1_u8, 10, 50] {
            let batch: Vec<i64> = ids.by_ref().take(count.into()).collect();
            let mut session = PgConnection::connect(&db.url).await.expect("a session");
            let mut session = session.begin().await.expect("a transaction");
            let started = started_by(&mut session, worker, &batch).await;
            assert_eq!(started, batch.len());
            let (rows, _) = rows_read(&mut session).await;
            // A queue of a hundred is read whole sooner than looked into.
            let most = 12 * i64::from(count) + 200;
            assert!(
                (1..=most).contains(&rows),
                "{count} of {size} tasks: {rows} rows read, at most {most} expected"
            );
            session.commit().await.expect("kept");
        }
        assert_invariants(&db.pool).await;
    }
}

#[tokio::test]
async fn elements_are_given_out_without_reading_the_list_that_they_come_from() {
    let db = TestDb::new().await;
    let steps = [
        step("list"),
        step("of_input").map(),
        step("of_list").deps(&["list"]).map(),
    ];
    define(&db.pool, "orders", &steps).await;
    let large = large_list();
    start(&db.pool, "orders", json!(large)).await;
    let worker = worker(&db.pool, "orders").await;
    let list = claim_one(&db.pool, worker).await;
    assert_eq!(list.step_slug, "list");
    complete(&db.pool, &list, json!(large)).await;
    let ids: Vec<i64> = messages(&db.pool, "orders")
        .await
        .iter()
        .map(|message| message.id)
        .collect();
    assert_eq!(ids.len(), 200);

    let mut session = PgConnection::connect(&db.url).await.expect("a session");
    let mut session = session.begin().await.expect("a transaction");
    assert_eq!(started_by(&mut session, worker, &ids).await, 200);
    let (_, large_rows) = rows_read(&mut session).await;
    assert_eq!(large_rows, 0);
    // Reading one of them is counted: the test would see it.
    sqlx::query("select md5(input::text) from pgflow.runs")
        .execute(&mut *session)
        .await
        .expect("inputs can be read");
    assert!(rows_read(&mut session).await.1 > 0);
    session.commit().await.expect("kept");
    assert_invariants(&db.pool).await;
}
