//! Changes of a task's status change no index: only its row.

use serde_json::json;
use sqlx::{Connection, PgConnection};

use crate::support::flows::{drain, fail, start, step};
use crate::support::invariants::assert_invariants;
use crate::support::rows::show_all;
use crate::support::runs::{Item, claim_all, complete_batch, database_with, of_step};

/// Returns the number of rows that this transaction has changed, and the number of those changed
/// without an index.
async fn changes(session: &mut PgConnection, table: &str) -> (i64, i64) {
    sqlx::query_as(
        "select pg_stat_get_xact_tuples_updated(c), pg_stat_get_xact_tuples_hot_updated(c) from (select $1::regclass as c) t",
    )
    .bind(table)
    .fetch_one(session)
    .await
    .expect("changes are counted")
}

#[tokio::test]
async fn tasks_are_claimed_retried_and_completed_within_their_pages() {
    let (db, worker) = database_with(&[
        step("a"),
        step("each").map().deps(&["a"]),
        step("last").deps(&["each"]),
    ])
    .await;
    start(&db.pool, "f", json!({})).await;
    drain(&db.pool, worker, |_| json!([1, 2, 3])).await;
    start(&db.pool, "f", json!({})).await;

    // A session of its own: the counts are those of all that a session did since it last reported
    // them.
    let mut session = PgConnection::connect(&db.url).await.expect("a session");
    let mut session = session.begin().await.expect("a transaction");
    let first = claim_all(&mut *session, worker).await;
    fail(&mut *session, of_step(&first, "a"), "again").await;
    sqlx::query("update pgmq.q_f set vt = now()")
        .execute(&mut *session)
        .await
        .expect("the message can be shown");
    for tasks in [1, 3, 1] {
        let claimed = claim_all(&mut *session, worker).await;
        assert_eq!(claimed.len(), tasks);
        let items: Vec<Item> = claimed
            .iter()
            .map(|task| Item::of(task, json!([1, 2, 3])))
            .collect();
        complete_batch(&mut *session, &items).await;
    }
    // Claimed and failed once; each of five tasks claimed and completed.
    assert_eq!(changes(&mut session, "pgflow.step_tasks").await, (12, 12));
    let (changed, within) = changes(&mut session, "pgflow.step_states").await;
    assert!(changed > 0);
    assert_eq!(within, changed);
    session.commit().await.expect("the run has ended");
    show_all(&db.pool, "f").await;
    assert_eq!(claim_all(&db.pool, worker).await, []);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn the_hot_tables_leave_room_on_their_pages() {
    let (db, _) = database_with(&[step("a")]).await;
    let room: Vec<String> = sqlx::query_scalar(
        "select c.relname || ' ' || o.option_value
         from pg_class c cross join pg_options_to_table(c.reloptions) o
         where o.option_name = 'fillfactor' and c.relkind = 'r'
         order by 1",
    )
    .fetch_all(&db.pool)
    .await
    .expect("the catalog can be read");
    let expected = [
        "q_f 50",
        "runs 50",
        "step_states 50",
        "step_tasks 60",
        "wakeups 20",
    ];
    assert_eq!(room, expected);
}
