//! Runs that can't be run to their end: each says why, and leaves no worker behind.

use pgflow::prelude::*;
use pgflow::testing::{EndedRun, RunToEndError, run_to_end};
use pgflow::{ClientError, StartupError};
use sqlx::{AssertSqlSafe, PgPool};
use tokio::task::JoinHandle;

use super::assert_nothing_left;
use crate::support::TestDb;
use crate::worker::probe::Probe;

struct Letters;

#[flow(input = String, state = Probe)]
impl Letters {
    #[step]
    async fn write(input: String, state: &Probe) -> StepResult<String> {
        state.pass("write").await;
        Ok(input)
    }

    #[step]
    async fn zip_up() -> StepResult<()> {
        Ok(())
    }

    #[step(depends_on = [write])]
    async fn send(write: &str) -> StepResult<usize> {
        Ok(write.len())
    }
}

mod other {
    use pgflow::prelude::*;

    /// The same slug, another shape.
    pub(super) struct Letters;

    #[flow(input = String)]
    impl Letters {
        #[step]
        async fn send(input: String) -> StepResult<String> {
            Ok(input)
        }
    }
}

fn start(pool: &PgPool, probe: &Probe) -> JoinHandle<Result<EndedRun<Letters>, RunToEndError>> {
    let (pool, probe) = (pool.clone(), probe.clone());
    tokio::spawn(async move { run_to_end::<Letters>(&pool, &probe, "hello".to_owned()).await })
}

/// Returns the result of the call when these statements are executed while its first handler runs.
async fn interrupted_by(db: &TestDb, sql: &str) -> RunToEndError {
    let probe = Probe::closed();
    let run = start(&db.pool, &probe);
    probe.until_seen("write").await;
    sqlx::raw_sql(AssertSqlSafe(sql.to_owned()))
        .execute(&db.pool)
        .await
        .unwrap();
    probe.let_all_go();
    run.await.unwrap().unwrap_err()
}

#[tokio::test]
async fn a_database_that_is_not_migrated_says_what_to_run() {
    let db = TestDb::blank().await;
    let run = run_to_end::<other::Letters>(&db.pool, &(), String::new());
    match run.await.unwrap_err() {
        RunToEndError::Startup(StartupError::NotReady(error)) => {
            assert!(error.to_string().contains("pgflow migrate"), "{error}");
        }
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn a_production_database_keeps_its_definition() {
    let db = TestDb::new().await;
    let run = run_to_end::<other::Letters>(&db.pool, &(), String::new());
    run.await.unwrap();
    let run = start(&db.pool, &Probe::open()).await.unwrap();
    let error = run.unwrap_err();
    assert!(
        matches!(
            error,
            RunToEndError::Startup(StartupError::ShapeMismatch(_))
        ),
        "{error}"
    );
    assert_nothing_left(&db.pool).await;
}

#[tokio::test]
async fn a_local_database_follows_the_code() {
    let db = TestDb::new().await;
    sqlx::query("select pgflow.set_environment('local')")
        .execute(&db.pool)
        .await
        .unwrap();
    let run = run_to_end::<other::Letters>(&db.pool, &(), "a".to_owned());
    assert_eq!(run.await.unwrap().into_output().unwrap().send, "a");
    let run = start(&db.pool, &Probe::open()).await.unwrap();
    assert_eq!(run.unwrap().into_output().unwrap().send, 5);
    assert_nothing_left(&db.pool).await;
}

#[tokio::test]
async fn no_slots_are_refused() {
    let db = TestDb::new().await;
    let run = run_to_end::<other::Letters>(&db.pool, &(), String::new()).concurrency(0);
    let error = run.await.unwrap_err();
    assert!(
        matches!(
            error,
            RunToEndError::Startup(StartupError::InvalidOptions { .. })
        ),
        "{error}"
    );
    assert_nothing_left(&db.pool).await;
}

#[tokio::test]
async fn an_input_that_can_not_be_stored_starts_no_run() {
    let db = TestDb::new().await;
    let run = run_to_end::<other::Letters>(&db.pool, &(), "\0".to_owned());
    match run.await.unwrap_err() {
        RunToEndError::Start(ClientError::UnstorableInput { flow, .. }) => {
            assert_eq!(flow, "letters");
        }
        other => panic!("{other}"),
    }
    assert_nothing_left(&db.pool).await;
}

#[tokio::test]
async fn a_call_that_is_told_to_stop_says_who_told_it_and_why() {
    let db = TestDb::new().await;
    let error = interrupted_by(
        &db,
        "select pgflow.deprecate_workers(array['pgflow_testing'], 'lunch')",
    )
    .await;
    match error {
        RunToEndError::Interrupted { reason, .. } => {
            assert_eq!(reason, "its worker was told to stop (lunch)");
        }
        other => panic!("{other}"),
    }
    assert_nothing_left(&db.pool).await;
}

#[tokio::test]
async fn a_run_that_is_deleted_is_missed() {
    let db = TestDb::new().await;
    let error = interrupted_by(&db, "select pgflow.delete_flow_and_data('letters')").await;
    assert!(matches!(error, RunToEndError::RunGone { .. }), "{error}");
    assert_nothing_left(&db.pool).await;
}

#[tokio::test]
async fn a_pool_that_is_closed_is_an_error_of_the_database() {
    let db = TestDb::new().await;
    let pool = PgPool::connect(&db.url).await.unwrap();
    let probe = Probe::closed();
    let run = start(&pool, &probe);
    probe.until_seen("write").await;
    pool.close().await;
    probe.let_all_go();
    let error = run.await.unwrap().unwrap_err();
    assert!(matches!(error, RunToEndError::Database { .. }), "{error}");
    crate::support::invariants::assert_invariants(&db.pool).await;
}

/// Takes as long as a run is given to continue.
#[tokio::test]
async fn a_run_that_can_not_go_on_says_what_it_waits_for() {
    let db = TestDb::new().await;
    let probe = Probe::closed();
    let (pool, own) = (db.pool.clone(), probe.clone());
    let run = tokio::spawn(async move {
        run_to_end::<Letters>(&pool, &own, String::new())
            .concurrency(1)
            .await
    });
    probe.until_seen("write").await;
    sqlx::raw_sql("delete from pgmq.q_letters where message ->> 'step_slug' = 'zip_up'")
        .execute(&db.pool)
        .await
        .unwrap();
    probe.let_all_go();
    match run.await.unwrap().unwrap_err() {
        RunToEndError::Stuck { explanation, .. } => {
            assert!(explanation.starts_with("step `zip_up`: "), "{explanation}");
            assert!(explanation.contains("message"), "{explanation}");
        }
        other => panic!("{other}"),
    }
    // The rows are not in good order: the test saw to that.
    let workers: i64 =
        sqlx::query_scalar("select count(*) from pgflow.workers where stopped_at is null")
            .fetch_one(&db.pool)
            .await
            .unwrap();
    assert_eq!(workers, 0);
}
