//! Callers that are connected while a database is upgraded under them: none of their calls fails,
//! be it prepared, in flight or waiting.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pgflow::migrate::Migrator;
use pgflow::sqlx::{self, Connection, PgConnection, Row};
use uuid::Uuid;

use crate::support::invariants::{TRANSITION_LOG, assert_invariants};
use crate::support::rows::count;
use crate::support::{TestDb, eventually};

/// The functions of the releases of levels 7 to 9, as they left them.
const FUNCTIONS_AT_LEVEL_7: &str = include_str!("../fixtures/functions_at_level_7.sql");
const FUNCTIONS_AT_LEVEL_8: &str = include_str!("../fixtures/functions_at_level_8.sql");
pub(super) const FUNCTIONS_AT_LEVEL_9: &str = include_str!("../fixtures/functions_at_level_9.sql");

const FLOW: &str = "
    select pgflow.create_flow('f', max_attempts => 5, base_delay => 0);
    select pgflow.add_step('f', 'a');
    select pgflow.add_step('f', 'b', '{a}');
    select pgflow.track_worker_function('w')";

/// The release of a level, in use.
pub(super) async fn at_level(level: i32, functions: &'static str) -> TestDb {
    let db = TestDb::blank().await;
    let migrator = Migrator::new().up_to(level);
    migrator.run(&db.pool).await.unwrap();
    for sql in [functions, FLOW] {
        sqlx::raw_sql(sql).execute(&db.pool).await.unwrap();
    }
    db
}

/// A session whose statements are all prepared, by their first call.
struct Caller {
    session: PgConnection,
    worker: Uuid,
}

impl Caller {
    async fn connect(db: &TestDb) -> Self {
        let mut session = PgConnection::connect(&db.url).await.unwrap();
        let worker = Uuid::now_v7();
        sqlx::query("select pgflow.register_worker($1, 'w', 'f', null, 'f', '{}')")
            .bind(worker)
            .execute(&mut session)
            .await
            .unwrap();
        Self { session, worker }
    }

    /// Another worker of the release starts, and stops.
    async fn start_another(&mut self) -> sqlx::Result<()> {
        let worker = Uuid::now_v7();
        for sql in [
            "select pgflow.register_worker($1, 'w', 'f', null, 'f', '{}')",
            "select pgflow.mark_worker_stopped($1)",
        ] {
            sqlx::query(sql)
                .bind(worker)
                .execute(&mut self.session)
                .await?;
        }
        Ok(())
    }

    /// Starts a run, and works on what there is: of two tasks one is failed, of the others each is
    /// completed.
    async fn round(&mut self) -> sqlx::Result<()> {
        let session = &mut self.session;
        sqlx::query("select * from pgflow.start_flow('f', '{}')")
            .fetch_all(&mut *session)
            .await?;
        sqlx::query("select * from pgflow.start_flows('f', array['1', '2']::jsonb[])")
            .fetch_all(&mut *session)
            .await?;
        sqlx::query("select * from pgflow.create_flow('f'), pgflow.add_step('f', 'a')")
            .fetch_all(&mut *session)
            .await?;
        let claimed = sqlx::query("select * from pgflow.claim_tasks($1, 6)")
            .bind(self.worker)
            .fetch_all(&mut *session)
            .await?;
        for task in claimed {
            let attempt: i32 = task.try_get("attempt")?;
            let report = if attempt == 1 {
                "select * from pgflow.fail_task($1, $2, 0, 'no', attempt => $3)"
            } else {
                "select * from pgflow.complete_task($1, $2, 0, '1', $3)"
            };
            sqlx::query(report)
                .bind(task.try_get::<Uuid, _>("run_id")?)
                .bind(task.try_get::<String, _>("step_slug")?)
                .bind(attempt)
                .fetch_all(&mut *session)
                .await?;
        }
        sqlx::query("select * from pgflow.worker_heartbeats(array[$1])")
            .bind(self.worker)
            .fetch_all(&mut *session)
            .await?;
        sqlx::query("select pgflow.requeue_stalled_tasks()")
            .fetch_all(&mut *session)
            .await?;
        // Some are returned: the attempt of a task has its claim's number.
        let claimed = sqlx::query("select * from pgflow.claim_tasks($1, 2)")
            .bind(self.worker)
            .fetch_all(&mut *session)
            .await?;
        for task in claimed {
            sqlx::query("select pgflow.release_tasks($1, array[$2], array[$3], '{0}', array[$4])")
                .bind(self.worker)
                .bind(task.try_get::<Uuid, _>("run_id")?)
                .bind(task.try_get::<String, _>("step_slug")?)
                .bind(task.try_get::<i32, _>("attempt")?)
                .fetch_all(&mut *session)
                .await?;
        }
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_call_fails_while_a_busy_database_of_level_7_is_upgraded() {
    upgrade_under_load(7, FUNCTIONS_AT_LEVEL_7).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_call_fails_while_a_busy_database_of_level_8_is_upgraded() {
    upgrade_under_load(8, FUNCTIONS_AT_LEVEL_8).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_call_fails_while_a_busy_database_of_level_9_is_upgraded() {
    upgrade_under_load(9, FUNCTIONS_AT_LEVEL_9).await;
}

async fn upgrade_under_load(level: i32, functions: &'static str) {
    let db = at_level(level, functions).await;
    let stop = Arc::new(AtomicBool::new(false));
    let mut callers = Vec::new();
    for _ in 0..4 {
        let mut caller = Caller::connect(&db).await;
        let stop = stop.clone();
        callers.push(tokio::spawn(async move {
            while !stop.load(Ordering::Relaxed) {
                caller.round().await?;
                caller.start_another().await?;
            }
            // Once more, when the upgrade is long done.
            caller.round().await?;
            caller.start_another().await
        }));
    }
    some_runs_complete(&db, 20).await;
    let report = Migrator::new().run(&db.pool).await;
    assert_eq!(report.expect("upgraded").from_version, level);
    some_runs_complete(&db, 20).await;
    stop.store(true, Ordering::Relaxed);
    for caller in callers {
        caller.await.unwrap().expect("no call fails");
    }
    sqlx::raw_sql(TRANSITION_LOG)
        .execute(&db.pool)
        .await
        .unwrap();
    assert_invariants(&db.pool).await;
}

/// Waits until so many more runs are complete.
async fn some_runs_complete(db: &TestDb, more: i64) {
    const COMPLETE: &str = "pgflow.runs where status = 'completed'";
    let before = count(&db.pool, COMPLETE).await;
    eventually(Duration::from_mins(1), "runs complete", async || {
        (count(&db.pool, COMPLETE).await >= before + more).then_some(())
    })
    .await;
}

/// As the next release may add one.
#[tokio::test]
async fn a_column_that_is_added_to_any_table_breaks_no_session() {
    let db = TestDb::new().await;
    sqlx::raw_sql(FLOW).execute(&db.pool).await.unwrap();
    let mut caller = Caller::connect(&db).await;
    let operator =
        "select * from pgflow.disable_worker_function('w'), pgflow.enable_worker_function('w'),
        pgflow.fence_worker_functions(array['w']), pgflow.unfence_worker_functions(array['w'])";
    for _ in 0..2 {
        caller.round().await.unwrap();
    }
    // It tells the worker to stop: the rounds after it claim nothing.
    sqlx::query(operator)
        .fetch_all(&mut caller.session)
        .await
        .unwrap();
    sqlx::raw_sql(
        "do $$
         declare
             v_table regclass;
         begin
             for v_table in select oid from pg_class where relnamespace = 'pgflow'::regnamespace and relkind = 'r' loop
                 execute format('alter table %s add column note text', v_table);
             end loop;
         end
         $$",
    )
    .execute(&db.pool)
    .await
    .unwrap();
    for _ in 0..2 {
        caller.round().await.unwrap();
    }
    sqlx::query(operator)
        .fetch_all(&mut caller.session)
        .await
        .unwrap();
    // It is called by nobody who prepares, and takes the flow away.
    for _ in 0..4 {
        sqlx::query("select * from pgflow.delete_flow_batch('f')")
            .fetch_all(&mut caller.session)
            .await
            .unwrap();
        if count(&db.pool, "pgflow.flows").await == 0 {
            return;
        }
    }
    panic!("the flow is still there");
}
