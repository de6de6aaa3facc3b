//! Whole runs: batches of completions, failures with all that a worker may report, runs driven to
//! their end in any order, and what became of them.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::RangeInclusive;

use serde_json::Value;
use sqlx::postgres::{PgExecutor, PgPool};
use sqlx::types::chrono::{DateTime, Utc};
use sqlx::{AssertSqlSafe, FromRow};
use uuid::Uuid;

use super::TestDb;
use super::flows::{Claimed, Step, claim, define, fail, worker};

/// A database with one flow, `f`, and a worker that serves it.
pub(crate) async fn database_with(steps: &[Step]) -> (TestDb, Uuid) {
    let db = TestDb::new().await;
    define(&db.pool, "f", steps).await;
    let worker = worker(&db.pool, "f").await;
    (db, worker)
}

/// One item of a batch for `complete_tasks`.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    pub(crate) run_id: Uuid,
    pub(crate) step_slug: String,
    pub(crate) task_index: i32,
    /// `None` speaks for whichever attempt is current.
    pub(crate) attempt: Option<i32>,
    /// `None` is SQL NULL.
    pub(crate) output: Option<Value>,
}

impl Item {
    /// Completes a claimed attempt.
    pub(crate) fn of(task: &Claimed, output: Value) -> Self {
        Self {
            run_id: task.run_id,
            step_slug: task.step_slug.clone(),
            task_index: task.task_index,
            attempt: Some(task.attempt),
            output: Some(output),
        }
    }

    pub(crate) fn attempt(mut self, attempt: impl Into<Option<i32>>) -> Self {
        self.attempt = attempt.into();
        self
    }
}

/// A row that `complete_tasks` returned.
#[derive(Debug, Clone, PartialEq, FromRow)]
pub(crate) struct ItemResult {
    pub(crate) item: i32,
    pub(crate) outcome: String,
    pub(crate) made_ready: bool,
}

/// Calls `complete_tasks`.
pub(crate) async fn try_complete_batch(
    db: impl PgExecutor<'_>,
    items: &[Item],
) -> sqlx::Result<Vec<ItemResult>> {
    let run_ids: Vec<Uuid> = items.iter().map(|i| i.run_id).collect();
    let step_slugs: Vec<&str> = items.iter().map(|i| i.step_slug.as_str()).collect();
    let task_indexes: Vec<i32> = items.iter().map(|i| i.task_index).collect();
    let attempts: Vec<Option<i32>> = items.iter().map(|i| i.attempt).collect();
    let outputs: Vec<Option<Value>> = items.iter().map(|i| i.output.clone()).collect();
    sqlx::query_as("select * from pgflow.complete_tasks($1, $2, $3, $4, $5) order by item")
        .bind(run_ids)
        .bind(step_slugs)
        .bind(task_indexes)
        .bind(attempts)
        .bind(outputs)
        .fetch_all(db)
        .await
}

/// Completes a batch; returns what became of each item, in their order.
pub(crate) async fn complete_batch(db: impl PgExecutor<'_>, items: &[Item]) -> Vec<String> {
    let rows = try_complete_batch(db, items)
        .await
        .expect("the batch is accepted");
    let numbers: Vec<i32> = rows.iter().map(|row| row.item).collect();
    let expected: Vec<i32> = (1..).take(items.len()).collect();
    assert_eq!(numbers, expected, "one row for each item");
    rows.into_iter().map(|row| row.outcome).collect()
}

/// The report of a worker on a failed attempt.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Failure<'a> {
    pub(crate) message: Option<&'a str>,
    /// Seconds, as Postgres reads a `numeric`.
    pub(crate) retry_delay: Option<&'a str>,
    /// `None` speaks for whichever attempt is current.
    pub(crate) attempt: Option<i32>,
    pub(crate) retryable: bool,
}

impl Default for Failure<'_> {
    fn default() -> Self {
        Self {
            message: Some("boom"),
            retry_delay: None,
            attempt: None,
            retryable: true,
        }
    }
}

/// Calls `fail_task`; returns the statuses of the rows that it returned.
pub(crate) async fn try_fail(
    db: impl PgExecutor<'_>,
    task: &Claimed,
    failure: Failure<'_>,
) -> sqlx::Result<Vec<String>> {
    sqlx::query_scalar(
        "select status from pgflow.fail_task($1, $2, $3, $4,
            retry_delay => $5::text::numeric, attempt => $6, retryable => $7)",
    )
    .bind(task.run_id)
    .bind(&task.step_slug)
    .bind(task.task_index)
    .bind(failure.message)
    .bind(failure.retry_delay)
    .bind(failure.attempt)
    .bind(failure.retryable)
    .fetch_all(db)
    .await
}

/// Fails a claimed task permanently; returns the status of its task afterwards.
pub(crate) async fn fail_for_good(
    db: impl PgExecutor<'_>,
    task: &Claimed,
    message: &str,
) -> String {
    let failure = Failure {
        message: Some(message),
        retryable: false,
        ..Failure::default()
    };
    let mut rows = try_fail(db, task, failure)
        .await
        .expect("the task can be failed");
    assert_eq!(rows.len(), 1, "fail_task returns the task's row");
    rows.remove(0)
}

/// Claims everything that is visible.
pub(crate) async fn claim_all(db: impl PgExecutor<'_>, worker: Uuid) -> Vec<Claimed> {
    claim(db, worker, 100_000).await
}

/// The one claimed task of a step.
#[track_caller]
pub(crate) fn of_step<'a>(tasks: &'a [Claimed], step: &str) -> &'a Claimed {
    let mut found = tasks.iter().filter(|task| task.step_slug == step);
    match (found.next(), found.next()) {
        (Some(task), None) => task,
        (None, _) => panic!("no task of step {step} was claimed"),
        (Some(_), Some(_)) => panic!("several tasks of step {step} were claimed"),
    }
}

/// A random sequence that is the same each time that a test of this name runs.
pub(crate) fn random(test_name: &str) -> fastrand::Rng {
    let mut hasher = DefaultHasher::new();
    test_name.hash(&mut hasher);
    fastrand::Rng::with_seed(hasher.finish())
}

/// Claims and reports, in random order and batches of random size, until no task is left. A handler
/// that returns an error fails its attempt. Returns how many attempts were reported.
pub(crate) async fn drain_in_random_order(
    pool: &PgPool,
    worker: Uuid,
    random: &mut fastrand::Rng,
    mut handler: impl FnMut(&Claimed) -> Result<Value, String>,
) -> usize {
    let mut running: Vec<Claimed> = Vec::new();
    let mut reported = 0;
    loop {
        let claimed = claim(pool, worker, random.i32(1..=8)).await;
        if claimed.is_empty() && running.is_empty() {
            return reported;
        }
        running.extend(claimed);
        random.shuffle(&mut running);
        let keep = random.usize(0..running.len());
        let mut batch = Vec::new();
        for task in running.split_off(keep) {
            reported += 1;
            match handler(&task) {
                Ok(output) => batch.push(Item::of(&task, output)),
                Err(message) => {
                    fail(pool, &task, &message).await;
                }
            }
        }
        complete_batch(pool, &batch).await;
    }
}

/// Describes the end of a run: its status, then each step's in the order of the definition, skipped
/// ones with their reason: `run started, a completed, b skipped: condition_unmet`.
pub(crate) async fn outline(pool: &PgPool, run: Uuid) -> String {
    sqlx::query_scalar(
        "select string_agg(line, ', ' order by position)
         from (
             select -1 as position, 'run ' || status as line from pgflow.runs where run_id = $1
             union all
             select d.step_index, s.step_slug || ' ' || s.status || coalesce(': ' || s.skip_reason, '')
             from pgflow.step_states s join pgflow.steps d using (flow_slug, step_slug)
             where s.run_id = $1
         ) lines",
    )
    .bind(run)
    .fetch_one(pool)
    .await
    .expect("the run can be read")
}

/// The statuses of a step's tasks, by index: `completed, queued`.
pub(crate) async fn task_statuses(pool: &PgPool, run: Uuid, step: &str) -> String {
    let tasks = super::rows::tasks(pool, run, step).await;
    let statuses: Vec<String> = tasks.into_iter().map(|task| task.status).collect();
    statuses.join(", ")
}

/// Returns the timestamps of a run's rows: `run: started`, then `a: created, started` for each
/// step, then `a[0]: queued` for each task.
pub(crate) async fn stamps(pool: &PgPool, run: Uuid) -> Vec<String> {
    sqlx::query_scalar(
        "select x.name || ': ' || (
             select string_agg(left(key, -3), ', ' order by key) from jsonb_each(x.columns)
             where key in ('created_at', 'queued_at', 'started_at', 'completed_at', 'failed_at', 'skipped_at') and value <> 'null'
         )
         from (
             select 1 as part, 'run' as name, to_jsonb(r) as columns from pgflow.runs r where r.run_id = $1
             union all
             select 2, s.step_slug, to_jsonb(s) from pgflow.step_states s where s.run_id = $1
             union all
             select 3, format('%s[%s]', t.step_slug, t.task_index), to_jsonb(t) from pgflow.step_tasks t where t.run_id = $1
         ) x
         order by x.part, x.name",
    )
    .bind(run)
    .fetch_all(pool)
    .await
    .expect("the rows can be read")
}

/// Everything that the runtime tables and the queue of a flow hold, for tests that nothing changed.
pub(crate) async fn everything(pool: &PgPool, queue: &str) -> Vec<String> {
    let query = format!(
        "select to_jsonb(r)::text from pgflow.runs r
         union all select to_jsonb(s)::text from pgflow.step_states s
         union all select to_jsonb(t)::text from pgflow.step_tasks t
         union all select to_jsonb(q)::text from pgmq.\"q_{queue}\" q
         union all select to_jsonb(a)::text from pgmq.\"a_{queue}\" a
         order by 1"
    );
    sqlx::query_scalar(AssertSqlSafe(query))
        .fetch_all(pool)
        .await
        .expect("the tables can be read")
}

/// Makes the tasks that a step of a run has started look as if they had started this many seconds
/// earlier, and so their claims.
pub(crate) async fn age(pool: &PgPool, run: Uuid, step: &str, seconds: i32) {
    let aged = sqlx::query(
        "with claimed as (
             update pgflow.claims c
             set claimed_at = claimed_at - make_interval(secs => $3), look_at = look_at - make_interval(secs => $3)
             where exists (select from unnest(c.run_ids, c.step_slugs) as i (run_id, step_slug) where i.run_id = $1 and i.step_slug = $2)
         )
         update pgflow.step_tasks
         set queued_at = queued_at - make_interval(secs => $3), started_at = started_at - make_interval(secs => $3)
         where run_id = $1 and step_slug = $2 and started_at is not null",
    )
    .bind(run)
    .bind(step)
    .bind(seconds)
    .execute(pool)
    .await
    .expect("rows can be aged");
    assert_ne!(aged.rows_affected(), 0, "there are started tasks to age");
}

/// As if recovery had let every claim alone for as long as it does. Calls look at all of them then.
pub(crate) async fn until_recovery_looks(pool: &PgPool) {
    sqlx::query("update pgflow.claims set look_at = least(look_at, now())")
        .execute(pool)
        .await
        .expect("claims can be changed");
}

/// Calls `requeue_stalled_tasks`; returns how many tasks it queued again.
pub(crate) async fn requeue(db: impl PgExecutor<'_>) -> i32 {
    sqlx::query_scalar("select pgflow.requeue_stalled_tasks()")
        .fetch_one(db)
        .await
        .expect("stalled tasks can be recovered")
}

/// Recovers one batch: how many tasks were queued again, how many ended, and whether more is due.
pub(crate) async fn recover(db: impl PgExecutor<'_>) -> (i32, i32, bool) {
    sqlx::query_as("select requeued, ended, more from pgflow.recover_tasks()")
        .fetch_one(db)
        .await
        .expect("tasks can be recovered")
}

/// Does what `call` does, and returns for how many whole seconds that may have hidden a message,
/// counted from the moment of the call: one number, unless the call took long.
pub(crate) async fn hidden_by<T>(
    pool: &PgPool,
    queue: &str,
    message_id: i64,
    call: impl Future<Output = T>,
) -> RangeInclusive<i64> {
    let before = now(pool).await;
    call.await;
    let after = now(pool).await;
    let query = format!("select vt from pgmq.\"q_{queue}\" where msg_id = $1");
    let until: DateTime<Utc> = sqlx::query_scalar(AssertSqlSafe(query))
        .bind(message_id)
        .fetch_one(pool)
        .await
        .expect("the message is in the queue");
    let [before, after, until] = [before, after, until].map(|time| time.timestamp_micros());
    let at_least = -(after - until).div_euclid(1_000_000);
    let at_most = (until - before).div_euclid(1_000_000);
    at_least..=at_most
}

/// Returns whether a message was hidden for a backoff of so many seconds: up to a quarter more at
/// random.
pub(crate) fn is_backoff(hidden: &RangeInclusive<i64>, seconds: i64) -> bool {
    // Fractions of a second are between the two ends, and those are the wrong way round then.
    *hidden.end() >= seconds && *hidden.start() <= (5 * seconds + 3) / 4
}

async fn now(pool: &PgPool) -> DateTime<Utc> {
    sqlx::query_scalar("select clock_timestamp()")
        .fetch_one(pool)
        .await
        .expect("Postgres tells the time")
}
