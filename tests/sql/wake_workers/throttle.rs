//! At most one notification per queue in 20 ms. Time passes by changing the queue's row.

use serde_json::json;
use sqlx::Connection;
use sqlx::postgres::{PgConnection, PgPool};
use sqlx::types::chrono::{DateTime, Utc};

use super::execute;
use crate::support::TestDb;
use crate::support::flows::{define, define_with_step_queues, start, step};
use crate::support::invariants::assert_invariants;
use crate::support::operations::Hints;

/// Sets when the queues were notified last, as an interval from now.
async fn notified(pool: &PgPool, ago: &'static str) {
    let changed = sqlx::query(
        "update pgflow.wakeups set notified_at = clock_timestamp() - $1::text::interval",
    )
    .bind(ago)
    .execute(pool)
    .await;
    changed.expect("time can be changed");
}

/// Returns the queues that are notified of a run's start when all but this one were notified at
/// this very moment. A start that takes 20 ms proves nothing, and is repeated.
async fn notified_but(pool: &PgPool, hints: &mut Hints, quiet: &str, flow: &str) -> Vec<String> {
    for _ in 0..100 {
        sqlx::query(
            "update pgflow.wakeups set notified_at = case queue_name when $1 then '-infinity' else clock_timestamp() end",
        )
        .bind(quiet)
        .execute(pool)
        .await
        .expect("time can be changed");
        let set_at = now(pool).await;
        start(pool, flow, json!({})).await;
        let took = now(pool).await - set_at;
        let queues = hints.queues(pool).await;
        // Half of it: the stamps are a bit older.
        if took.num_milliseconds() < 10 {
            return queues;
        }
    }
    panic!("a start takes long, each time");
}

async fn now(pool: &PgPool) -> DateTime<Utc> {
    sqlx::query_scalar("select clock_timestamp()")
        .fetch_one(pool)
        .await
        .expect("Postgres tells the time")
}

#[tokio::test]
async fn within_20_ms_nobody_is_notified_again_and_after_that_somebody_is() {
    let db = TestDb::new().await;
    define(&db.pool, "f", &[step("a")]).await;
    let mut hints = Hints::listen(&db.pool).await;
    let queues = notified_but(&db.pool, &mut hints, "none", "f").await;
    assert_eq!(queues, [] as [&str; 0]);
    notified(&db.pool, "20 milliseconds").await;
    start(&db.pool, "f", json!({})).await;
    assert_eq!(hints.queues(&db.pool).await, ["f"]);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn each_queue_has_its_own_throttle() {
    let db = TestDb::new().await;
    define_with_step_queues(&db.pool, "g", &[step("a"), step("b"), step("c")]).await;
    let mut hints = Hints::listen(&db.pool).await;
    for quiet in ["g__b", "g__c"] {
        let queues = notified_but(&db.pool, &mut hints, quiet, "g").await;
        assert_eq!(queues, [quiet]);
    }
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_notification_is_stamped_with_its_moment() {
    let db = TestDb::new().await;
    define(&db.pool, "f", &[step("a")]).await;
    let before = now(&db.pool).await;
    start(&db.pool, "f", json!({})).await;
    let after = now(&db.pool).await;
    let stamp: DateTime<Utc> = sqlx::query_scalar("select notified_at from pgflow.wakeups")
        .fetch_one(&db.pool)
        .await
        .expect("one queue");
    assert!(before < stamp && stamp < after, "{before} {stamp} {after}");
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_stamp_of_the_future_silences_nobody() {
    let db = TestDb::new().await;
    define(&db.pool, "f", &[step("a")]).await;
    let mut hints = Hints::listen(&db.pool).await;
    for ahead in ["-1 hour", "-10 seconds"] {
        notified(&db.pool, ahead).await;
        start(&db.pool, "f", json!({})).await;
        assert_eq!(hints.queues(&db.pool).await, ["f"], "{ahead}");
        let is_past: bool =
            sqlx::query_scalar("select notified_at <= clock_timestamp() from pgflow.wakeups")
                .fetch_one(&db.pool)
                .await
                .expect("one queue");
        assert!(is_past, "the throttle works from here on");
    }
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn one_transaction_notifies_once_however_many_runs_it_starts() {
    let db = TestDb::new().await;
    define(&db.pool, "f", &[step("a")]).await;
    let mut hints = Hints::listen(&db.pool).await;
    let mut session = db.pool.begin().await.expect("a session");
    for _ in 0..20 {
        start(&mut *session, "f", json!({})).await;
    }
    session.commit().await.expect("committed");
    assert_eq!(hints.queues(&db.pool).await, ["f"]);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn its_row_stays_where_it_is_however_often_it_changes() {
    let db = TestDb::new().await;
    for flow in ["f", "g", "h"] {
        define(&db.pool, flow, &[step("a")]).await;
    }
    // Vacuum would do it by itself.
    execute(
        &db.pool,
        "alter table pgflow.wakeups set (autovacuum_enabled = false)",
    )
    .await;
    let mut session = db.pool.acquire().await.expect("a session");
    for _ in 0..2000 {
        sqlx::query("update pgflow.wakeups set notified_at = '-infinity' where queue_name = 'f'")
            .execute(&mut *session)
            .await
            .expect("time can pass");
        sqlx::query("select pgflow._wake_workers('{f}')")
            .execute(&mut *session)
            .await
            .expect("notified");
    }
    sqlx::query("select pg_stat_force_next_flush()")
        .execute(&mut *session)
        .await
        .expect("counts are reported");
    let (updates, in_place): (i64, i64) = sqlx::query_as(
        "select n_tup_upd, n_tup_hot_upd from pg_stat_user_tables where relid = 'pgflow.wakeups'::regclass",
    )
    .fetch_one(&db.pool)
    .await
    .expect("counts can be read");
    assert!(updates >= 4000, "{updates}");
    // What another session may still see keeps its place for as long: on a busy machine for many
    // updates.
    assert!(in_place * 10 >= updates * 9, "{in_place} of {updates}");
    let (pages, index_pages): (i64, i64) = sqlx::query_as(
        "select pg_relation_size('pgflow.wakeups') / 8192, pg_relation_size('pgflow.wakeups_pkey') / 8192",
    )
    .fetch_one(&db.pool)
    .await
    .expect("sizes can be read");
    // Without that it would be fifty and more.
    assert!(pages <= 10 && index_pages <= 4, "{pages}, {index_pages}");
}

/// The workers that were notified have looked for the last time when such a transaction commits.
#[tokio::test]
async fn a_transaction_that_was_too_early_and_lasts_notifies_when_it_commits() {
    let db = TestDb::new().await;
    define(&db.pool, "f", &[step("a")]).await;
    for _ in 0..2 {
        let mut hints = Hints::listen(&db.pool).await;
        let mut session = db.pool.begin().await.expect("a transaction");
        start_twice_too_early(&mut session).await;
        assert_eq!(hints.queues(&db.pool).await, [] as [&str; 0]);
        sqlx::query(
            "update pgflow.wakeups set notified_at = clock_timestamp() - interval '1 second'",
        )
        .execute(&mut *session)
        .await
        .expect("time can pass");
        session.commit().await.expect("committed");
        // Once, however many of its calls were too early.
        assert_eq!(hints.queues(&db.pool).await, ["f"]);
        let left: i64 = sqlx::query_scalar("select count(*) from pgflow.late_wakeups")
            .fetch_one(&db.pool)
            .await
            .expect("counted");
        assert_eq!(left, 0);
    }
    assert_invariants(&db.pool).await;
}

/// Starts two runs within 20 ms of a notification.
async fn start_twice_too_early(session: &mut PgConnection) {
    for _ in 0..100 {
        let mut savepoint = session.begin().await.expect("a savepoint");
        sqlx::raw_sql(
            "do $$
             begin
                 update pgflow.wakeups set notified_at = clock_timestamp();
                 perform pgflow.start_flow('f', '{}');
                 perform pgflow.start_flow('f', '{}');
             end
             $$",
        )
        .execute(&mut *savepoint)
        .await
        .expect("started");
        let early: i64 = sqlx::query_scalar("select count(*) from pgflow.late_wakeups")
            .fetch_one(&mut *savepoint)
            .await
            .expect("counted");
        if early == 2 {
            savepoint.commit().await.expect("kept");
            return;
        }
        savepoint.rollback().await.expect("undone");
    }
    panic!("two starts take 20 ms, each time");
}
