//! `setup_ensure_workers_cron`, the twin of `setup_requeue_stalled_tasks_cron`, with the same
//! stand-in for `pg_cron`.

use sqlx::AssertSqlSafe;
use sqlx::postgres::{PgDatabaseError, PgPool};

use super::setup_requeue_stalled_tasks_cron::{install_cron, jobs};
use crate::support::TestDb;

async fn set_up(pool: &PgPool, arguments: &str) -> sqlx::Result<String> {
    let call = format!("select pgflow.setup_ensure_workers_cron({arguments})");
    sqlx::query_scalar(AssertSqlSafe(call))
        .fetch_one(pool)
        .await
}

fn job(schedule: &str) -> (String, String, String) {
    let (name, command) = ("pgflow_ensure_workers", "select pgflow.ensure_workers()");
    (name.to_owned(), schedule.to_owned(), command.to_owned())
}

#[tokio::test]
async fn invocations_are_scheduled_beside_recovery_and_called_again_the_interval_changes() {
    let db = TestDb::new().await;
    install_cron(&db.pool).await;
    sqlx::query("select pgflow.setup_requeue_stalled_tasks_cron()")
        .execute(&db.pool)
        .await
        .expect("scheduled");
    assert_eq!(
        set_up(&db.pool, "").await.expect("scheduled"),
        "pg_cron runs pgflow.ensure_workers() with the schedule \"5 seconds\""
    );
    set_up(&db.pool, "'* * * * *'").await.expect("changed");
    let jobs = jobs(&db.pool).await;
    assert_eq!(jobs.len(), 2);
    assert!(jobs.contains(&job("* * * * *")), "{jobs:?}");
}

#[tokio::test]
async fn without_pg_cron_or_a_schedule_it_says_what_to_do() {
    let db = TestDb::new().await;
    let refused = async |arguments: &str| {
        let error = set_up(&db.pool, arguments).await.expect_err("refused");
        let error = error.into_database_error().expect("of Postgres");
        let error = error.downcast::<PgDatabaseError>();
        (
            error.code().to_owned(),
            error.hint().unwrap_or_default().to_owned(),
        )
    };
    let (code, hint) = refused("").await;
    assert_eq!(code, "PF011");
    assert!(hint.contains("a scheduler of your own"), "{hint}");
    install_cron(&db.pool).await;
    for arguments in ["null", "'every second'"] {
        assert_eq!(refused(arguments).await.0, "PF009", "{arguments}");
    }
}
