//! Migration 0004: what is known of workers and their functions is carried, and a database in use
//! continues.

use std::time::Duration;

use pgflow::sqlx;
use pgflow_migrations::LATEST_VERSION;
use pgflow_runtime::migrate::{self, MigrateError, Migrator};
use serde_json::Value;

use super::{Blank, blank, chain};
use crate::sql::stored::{assert_same, stored};
use crate::support::{eventually, sessions::holding};
use crate::upgrade::POPULATED_AT_LEVEL_3;

/// As the release before 0004 has it.
const ENABLE: &str =
    "create function pgflow.enable_worker_function(function_name text) returns void
    language sql set search_path = pg_catalog, pg_temp as $$ select $$";

/// A database in use at level 3.
async fn populated() -> Blank {
    let database = blank().await;
    Migrator::new().up_to(3).run(&database.pool).await.unwrap();
    database.run(POPULATED_AT_LEVEL_3).await;
    database.run(ENABLE).await;
    database
}

async fn rows(database: &Blank, query: &'static str) -> Vec<Value> {
    sqlx::query_scalar(query)
        .fetch_all(&database.pool)
        .await
        .unwrap()
}

#[tokio::test]
async fn functions_and_workers_are_carried_as_they_are_and_none_is_fenced() {
    let database = populated().await;
    let functions = "select to_jsonb(w) - array['fenced_at', 'recorded_enabled', 'recorded_disabled_at', 'recorded_disabled_reason', 'http_url']
        from pgflow.worker_functions w order by function_name";
    let workers = "select to_jsonb(w) - array['deprecated_reason', 'host', 'pid', 'heard_since', 'lost_at', 'flow_input_once',
            'alone_queue', 'alone_message', 'alone_attempt', 'alone_since', 'build'] from pgflow.workers w order by worker_id";
    let before = (
        rows(&database, functions).await,
        rows(&database, workers).await,
    );
    assert_eq!((before.0.len(), before.1.len()), (2, 4));
    let report = migrate::migrate(&database.pool).await.unwrap();
    assert_eq!(
        (report.from_version, report.to_version),
        (3, LATEST_VERSION)
    );
    assert_eq!(rows(&database, functions).await, before.0);
    assert_eq!(rows(&database, workers).await, before.1);
    let new = "select (select count(*) from pgflow.worker_functions where num_nonnulls(fenced_at, recorded_enabled, recorded_disabled_at,
            recorded_disabled_reason, http_url) > 0)
        + (select count(*) from pgflow.workers where deprecated_reason is not null)
        + (select count(*) from pgflow.installation where not wakeups)";
    assert_eq!(database.count(new).await, 0);
    let states = database
        .text("select string_agg(right(worker_id::text, 2) || ' ' || state || ' ' || started_tasks, ', ' order by worker_id) from pgflow.worker_status")
        .await;
    assert_eq!(states, "1f running 0, dd lost 1, ee stopped 0, ff lost 0");
}

/// It holds its function's row before it writes its own; the upgrade must not hold the workers
/// while it waits for the functions.
#[tokio::test]
async fn the_upgrade_waits_for_a_worker_that_registers() {
    let database = populated().await;
    let function = "select from pgflow.worker_functions limit 1 for share";
    let mut registering = holding(&database.pool, function).await;
    let migrating = database.pool.clone();
    let upgrade = tokio::spawn(async move { migrate::migrate(&migrating).await });
    until_blocked_upgrade(&database).await;
    let register = "insert into pgflow.workers (worker_id, function_name, queue_name, flow_slug) values (gen_random_uuid(), 'f', 'f', 'f')";
    sqlx::query(register)
        .execute(&mut *registering)
        .await
        .unwrap();
    registering.commit().await.unwrap();
    let report = upgrade.await.unwrap().unwrap();
    assert_eq!(report.to_version, LATEST_VERSION);
}

/// Waits until a session of the database waits for a lock of a table.
async fn until_blocked_upgrade(database: &Blank) {
    let waiting = "select count(*) from pg_locks l join pg_database d on d.oid = l.database
        where d.datname = current_database() and not l.granted and l.locktype = 'relation'";
    eventually(
        Duration::from_secs(20),
        "the upgrade waits for a lock",
        async || (database.count(waiting).await > 0).then_some(()),
    )
    .await;
}

#[tokio::test]
async fn coverage_says_what_it_said() {
    let database = populated().await;
    // Level 3 alone has no functions yet.
    database
        .run(
            "create or replace function pgflow._waiting_messages(queue_name text, out messages bigint, out oldest_at timestamptz)
             language sql stable as $$ select 0::bigint, null::timestamptz $$",
        )
        .await;
    let coverage = "select to_jsonb(c) - array['waiting_messages', 'oldest_waiting_at'] from pgflow.coverage c";
    let before = rows(&database, coverage).await;
    assert_eq!(before.len(), 4);
    let covered = before.iter().filter(|row| row["is_covered"] == true);
    assert_eq!(covered.count(), 1);
    migrate::migrate(&database.pool).await.unwrap();
    assert_eq!(rows(&database, coverage).await, before);
}

#[tokio::test]
async fn each_queue_of_a_flow_is_known_to_the_throttle() {
    let database = populated().await;
    database
        .run("insert into pgflow.flows (flow_slug) values ('Empty')")
        .await;
    migrate::migrate(&database.pool).await.unwrap();
    let queues = "select string_agg(queue_name, ' ' order by queue_name collate \"C\") from pgflow.wakeups where notified_at = '-infinity'";
    assert_eq!(
        database.text(queues).await,
        "empty ordertotals__double ordertotals__parse ordertotals__total refunds"
    );
}

#[tokio::test]
async fn a_function_that_was_disabled_is_enabled_by_the_new_function() {
    let database = populated().await;
    migrate::migrate(&database.pool).await.unwrap();
    let enabled = "select to_jsonb(pgflow.enable_worker_function('refund-worker'))";
    let row = &rows(&database, enabled).await[0];
    assert_eq!(row["enabled"], true);
    assert_eq!(row["start_mode"], "http");
}

#[tokio::test]
async fn a_database_in_use_is_upgraded_by_migrate_and_by_the_script_alike() {
    let (by_migrate, by_script) = (populated().await, populated().await);
    migrate::migrate(&by_migrate.pool).await.unwrap();
    by_script.run(migrate::script()).await;
    assert_eq!(by_script.dump().await, by_migrate.dump().await);
    for database in [&by_migrate, &by_script] {
        assert!(
            migrate::migrate(&database.pool)
                .await
                .unwrap()
                .is_unchanged()
        );
    }
}

#[tokio::test]
async fn what_stands_on_the_old_function_is_not_dropped_with_it() {
    let database = populated().await;
    database
        .run("create view public.enabled_by_hand as select pgflow.enable_worker_function('refund-worker')::text as done")
        .await;
    let (dump, before) = (database.dump().await, stored(&database.pool).await);
    let error = migrate::migrate(&database.pool).await.unwrap_err();
    assert!(
        matches!(
            error,
            MigrateError::Migration {
                version: 4,
                name: "workers",
                ..
            }
        ),
        "{error:?}"
    );
    let message = chain(&error);
    assert!(message.contains("enable_worker_function"), "{message}");
    let by_script = database.error_of(migrate::script()).await;
    assert!(by_script.contains("enable_worker_function"), "{by_script}");
    assert_eq!(database.dump().await, dump);
    assert_same(&before, &stored(&database.pool).await);

    database.run("drop view public.enabled_by_hand").await;
    migrate::migrate(&database.pool).await.unwrap();
}
