//! `setup_requeue_stalled_tasks_cron`, with a stand-in for `pg_cron` that keeps the jobs by name
//! and refuses what is no schedule, as `pg_cron` does.

use serde_json::json;
use sqlx::AssertSqlSafe;
use sqlx::postgres::{PgDatabaseError, PgPool};

use crate::support::TestDb;
use crate::support::flows::{claim_one, start, step};
use crate::support::invariants::assert_invariants;
use crate::support::runs::{age, database_with, task_statuses};

pub(super) async fn install_cron(pool: &PgPool) {
    sqlx::raw_sql(
        "create schema cron;
         create table cron.job (jobname text primary key, schedule text, command text);
         create function cron.schedule(job_name text, schedule text, command text) returns bigint language plpgsql as $$
         begin
             -- Seconds, or five fields.
             if $2 !~ '^([1-5]?[0-9] seconds|(\\S+ ){4}\\S+)$' then
                 raise exception 'invalid schedule: %', $2 using errcode = 'invalid_parameter_value';
             end if;
             insert into cron.job values ($1, $2, $3)
             on conflict (jobname) do update set schedule = excluded.schedule, command = excluded.command;
             return 1;
         end
         $$",
    )
    .execute(pool)
    .await
    .expect("the stand-in can be made");
}

async fn set_up(pool: &PgPool, arguments: &str) -> sqlx::Result<String> {
    let call = format!("select pgflow.setup_requeue_stalled_tasks_cron({arguments})");
    sqlx::query_scalar(AssertSqlSafe(call))
        .fetch_one(pool)
        .await
}

/// Name, schedule and command of each job.
pub(super) async fn jobs(pool: &PgPool) -> Vec<(String, String, String)> {
    sqlx::query_as("select jobname, schedule, command from cron.job")
        .fetch_all(pool)
        .await
        .expect("jobs can be read")
}

#[tokio::test]
async fn recovery_is_scheduled_every_15_seconds_and_the_answer_says_so() {
    let db = TestDb::new().await;
    install_cron(&db.pool).await;
    assert_eq!(
        set_up(&db.pool, "").await.expect("scheduled"),
        "pg_cron runs pgflow.requeue_stalled_tasks() with the schedule \"15 seconds\""
    );
    let job = (
        "pgflow_requeue_stalled_tasks",
        "15 seconds",
        "select pgflow.requeue_stalled_tasks()",
    );
    let job = (job.0.to_owned(), job.1.to_owned(), job.2.to_owned());
    assert_eq!(jobs(&db.pool).await, [job]);
}

#[tokio::test]
async fn another_interval_replaces_the_job() {
    let db = TestDb::new().await;
    install_cron(&db.pool).await;
    for interval in ["15 seconds", "5 seconds", "* * * * *"] {
        let argument = format!("cron_interval => '{interval}'");
        let answer = set_up(&db.pool, &argument).await.expect("scheduled");
        assert!(answer.contains(interval), "{answer}");
        let schedules: Vec<String> = jobs(&db.pool).await.into_iter().map(|job| job.1).collect();
        assert_eq!(schedules, [interval]);
    }
}

#[tokio::test]
async fn what_is_scheduled_recovers_stalled_tasks() {
    let (db, worker) = database_with(&[step("a")]).await;
    install_cron(&db.pool).await;
    set_up(&db.pool, "").await.expect("scheduled");
    let run_id = start(&db.pool, "f", json!({})).await;
    claim_one(&db.pool, worker).await;
    age(&db.pool, run_id, "a", 3600).await;
    let command = jobs(&db.pool).await.remove(0).2;
    sqlx::raw_sql(AssertSqlSafe(command))
        .execute(&db.pool)
        .await
        .expect("the command runs");
    assert_eq!(task_statuses(&db.pool, run_id, "a").await, "queued");
    assert_invariants(&db.pool).await;
}

/// The error's code and message, and its hint.
fn refused(result: sqlx::Result<String>) -> (String, String) {
    let error = result.expect_err("it was to be refused");
    let error = error.as_database_error().expect("Postgres raised it");
    let error = error.downcast_ref::<PgDatabaseError>();
    let hint = error.hint().expect("it has a hint").to_owned();
    (format!("{}: {}", error.code(), error.message()), hint)
}

#[tokio::test]
async fn a_schedule_that_pg_cron_refuses_changes_nothing_and_is_told_what_would_do() {
    let db = TestDb::new().await;
    install_cron(&db.pool).await;
    set_up(&db.pool, "").await.expect("scheduled");
    let before = jobs(&db.pool).await;
    // Versions before 1.5 know no seconds: what is said must help there too.
    let example =
        "For example '15 seconds' (pg_cron 1.5 and newer), or '* * * * *' for every minute.";
    for (schedule, error) in [
        (
            "'soon'",
            "PF009: pg_cron refuses the schedule \"soon\": invalid schedule: soon",
        ),
        ("null", "PF009: the schedule is null"),
    ] {
        let refused = refused(set_up(&db.pool, schedule).await);
        assert_eq!(refused, (error.to_owned(), example.to_owned()));
    }
    assert_eq!(jobs(&db.pool).await, before);
}

#[tokio::test]
async fn without_pg_cron_it_is_refused() {
    let db = TestDb::new().await;
    let (error, hint) = refused(set_up(&db.pool, "").await);
    assert_eq!(error, "PF011: this database has no pg_cron");
    assert_eq!(
        hint,
        "Nothing is needed while a worker runs: workers recover stalled tasks every 15 seconds. Else: create extension pg_cron."
    );
}
