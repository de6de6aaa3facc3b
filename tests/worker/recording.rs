//! Results that the database does not take: each fails its own attempt, with the database's reason,
//! and no other.

use std::time::Duration;

use pgflow::client::Client;
use pgflow::prelude::*;
use pgflow::worker::WorkerError;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{AssertSqlSafe, PgPool};

use super::{DEADLINE, capture::capture, probe::Probe, start};
use crate::support::{TestDb, eventually, invariants::assert_invariants};

/// Returns its input, or fails with it.
struct Echo;

#[flow(input = String, state = Probe, max_attempts = 1)]
impl Echo {
    #[step]
    async fn say(input: String, state: &Probe) -> StepResult<String> {
        state.pass(&*input).await;
        match (&*input, input.strip_prefix("fail: ")) {
            // An input can't hold what a database has no characters for.
            ("smile", _) => Ok("emoji 😀".to_owned()),
            ("frown", _) => Err("the API said 😀".into()),
            (_, Some(message)) => Err(message.into()),
            (_, None) => Ok(input),
        }
    }
}

async fn execute(pool: &PgPool, sql: impl Into<String>) {
    let done = sqlx::raw_sql(AssertSqlSafe(sql.into())).execute(pool).await;
    done.expect("the statement succeeds");
}

/// Runs one culprit between innocents that end together with it; returns what the culprit's run
/// said.
async fn culprit(admin: &PgPool, pool: &PgPool, input: &str) -> String {
    let probe = Probe::closed();
    let worker = start::<Echo>(pool, probe.clone()).await;
    let client = Client::new(admin.clone());
    let inputs = ["one", input, "three"].map(ToOwned::to_owned);
    let runs = client.start_many::<Echo>(&inputs).await.expect("started");
    eventually(DEADLINE, "all run", async || {
        (probe.seen().len() == 3).then_some(())
    })
    .await;
    probe.let_all_go();
    let mut failure = None;
    for (run, input) in runs.iter().zip(&inputs) {
        let result = run.wait().timeout(DEADLINE).await.map(|output| output.say);
        if *input == inputs[1] {
            failure = Some(result.expect_err("the culprit fails").to_string());
        } else {
            assert_eq!(result.expect("an innocent completes"), *input);
        }
    }
    worker.stop().await.expect("nothing is lost");
    failure.expect("there was a culprit")
}

async fn refuse_by(pool: &PgPool, condition: &str, action: &str) {
    execute(
        pool,
        format!(
            "create function public.refuse() returns trigger language plpgsql as $$ begin if {condition} then {action}; end if; return new; end $$; \
             create trigger refuse before update on pgflow.step_tasks for each row execute function public.refuse()"
        ),
    )
    .await;
}

#[tokio::test]
async fn a_statement_that_takes_too_long_fails_its_own_run_only() {
    let db = TestDb::new().await;
    refuse_by(&db.pool, "new.output = '\"slow\"'", "perform pg_sleep(10)").await;
    let options: PgConnectOptions = db.url.parse().expect("a URL");
    let options = options.options([("statement_timeout", "2s")]);
    let pool = PgPoolOptions::new()
        .connect_with(options)
        .await
        .expect("connects");
    let failure = culprit(&db.pool, &pool, "slow").await;
    assert!(
        failure.contains("the step's output can't be stored")
            && failure.contains("statement timeout"),
        "{failure}"
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn what_a_foreign_trigger_or_constraint_refuses_fails_its_own_run_only() {
    let db = TestDb::new().await;
    refuse_by(
        &db.pool,
        "new.output = '\"bad\"'",
        "raise exception 'not this one'",
    )
    .await;
    let failure = culprit(&db.pool, &db.pool, "bad").await;
    assert!(failure.contains("not this one"), "{failure}");

    let check =
        "alter table pgflow.step_states add constraint no_worse check (output <> '\"worse\"')";
    execute(&db.pool, check).await;
    let failure = culprit(&db.pool, &db.pool, "worse").await;
    assert!(failure.contains("no_worse"), "{failure}");

    // Neither the words of a failure nor an escaped form of them.
    let check = "alter table pgflow.step_tasks add constraint few_words check (error_message not like '%é%' and error_message not like '%\\\\u{e9}%')";
    execute(&db.pool, check).await;
    let failure = culprit(&db.pool, &db.pool, "fail: é").await;
    assert!(failure.contains("(SQLSTATE 23514)"), "{failure}");
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_database_of_another_encoding_stores_each_failure() {
    let db = TestDb::blank().await;
    let name = format!("{}_latin", db.name);
    execute(
        &db.pool,
        format!("create database {name} encoding 'LATIN1' lc_collate 'C' lc_ctype 'C' template template0"),
    )
    .await;
    let options: PgConnectOptions = db.url.parse().expect("a URL");
    let pool = PgPool::connect_with(options.database(&name))
        .await
        .expect("connects");
    pgflow::migrate(&pool).await.expect("migrated");

    let failure = culprit(&pool, &pool, "fail: the API said é").await;
    assert!(failure.ends_with("the API said é"), "{failure}");
    let failure = culprit(&pool, &pool, "smile").await;
    assert!(
        failure.contains("the step's output can't be stored") && failure.contains("LATIN1"),
        "{failure}"
    );
    let failure = culprit(&pool, &pool, "frown").await;
    assert!(failure.ends_with(r"the API said \u{1f600}"), "{failure}");
    pool.close().await;
    execute(&db.pool, format!("drop database {name} with (force)")).await;
}

#[tokio::test]
async fn results_that_a_closed_pool_loses_are_an_error_of_stop() {
    let db = TestDb::new().await;
    let options: PgConnectOptions = db.url.parse().expect("a URL");
    let pool = PgPool::connect_with(options).await.expect("connects");
    let probe = Probe::closed();
    let worker = start::<Echo>(&pool, probe.clone()).await;
    let client = Client::new(db.pool.clone());
    let inputs = ["one", "two"].map(ToOwned::to_owned);
    client.start_many::<Echo>(&inputs).await.expect("started");
    eventually(DEADLINE, "both run", async || {
        (probe.seen().len() == 2).then_some(())
    })
    .await;
    pool.close().await;
    probe.let_all_go();
    let error = worker.stop().await.expect_err("results were lost");
    assert!(
        matches!(error, WorkerError::ResultsLost { results: 2 }),
        "{error}"
    );
}

#[tokio::test]
async fn warnings_name_run_step_index_and_attempt_without_a_span_and_on_one_line() {
    let lines = capture();
    let db = TestDb::new().await;
    let worker = start::<Echo>(&db.pool, Probe::open()).await;
    let client = Client::new(db.pool.clone());
    let input = "fail: a\nERROR forged\u{1b}[2J\u{202e}b".to_owned();
    let run = client.start::<Echo>(&input).await.expect("started");
    let ended = run.wait().timeout(DEADLINE).await.map(|output| output.say);
    let error = ended.expect_err("fails");
    assert!(
        error.to_string().contains("a\nERROR forged"),
        "stored as it is"
    );
    worker.stop().await.expect("stops");
    let line = lines.line("attempt failed, it was the last one");
    let (_, event) = line
        .split_once("attempt failed, it was the last one")
        .expect("an event");
    for field in [
        format!("run_id={}", run.run_id()),
        "step=\"say\"".to_owned(),
        "task_index=0".to_owned(),
        "attempt=1".to_owned(),
        "error=a\\nERROR forged\\u{1b}[2J\\u{202e}b".to_owned(),
    ] {
        assert!(event.contains(&field), "{field} in {line}");
    }
}

#[tokio::test]
async fn an_input_that_can_not_be_printed_keeps_no_other_waiting() {
    let db = TestDb::new().await;
    super::define::<Echo>(&db.pool, Probe::open()).await;
    let client = Client::new(db.pool.clone());
    let inputs = ["one", "two", "three"].map(ToOwned::to_owned);
    let runs = client.start_many::<Echo>(&inputs).await.expect("started");
    let explosive = "('[' || repeat('1e131071,', 8299) || '1]')::jsonb";
    execute(
        &db.pool,
        format!(
            "update pgflow.runs set input = {explosive} where run_id = '{}'",
            runs[0].run_id()
        ),
    )
    .await;
    let worker = start::<Echo>(&db.pool, Probe::open()).await;
    let ended = runs[0]
        .wait()
        .timeout(Duration::from_mins(2))
        .await
        .map(|output| output.say);
    let error = ended.expect_err("fails");
    let text = error.to_string();
    assert!(
        text.contains("the flow's input can't be handed to a worker: "),
        "{text}"
    );
    for run in &runs[1..] {
        assert!(run.wait().timeout(DEADLINE).await.is_ok());
    }
    worker.stop().await.expect("stops");
}
