//! `recover_tasks` by liveness: the tasks of a worker that is gone do not wait for their timeouts,
//! and those of a worker that lives are left to it. `requeue_stalled_tasks` has what goes by time.

use std::time::Duration;

use serde_json::json;
use sqlx::postgres::PgPool;
use uuid::Uuid;

use crate::support::flows::{claim_one, define, start, step, worker};
use crate::support::invariants::assert_invariants;
use crate::support::rows::{run, task};
use crate::support::runs::{
    age, claim_all, database_with, recover, task_statuses, until_recovery_looks,
};
use crate::support::{TestDb, eventually};

/// A flow whose tasks may run for two hours, one run of it whose task `owner` runs, and a worker
/// that has been heard of for an hour. A worker is lost after 5 seconds: a young test server serves
/// as well.
struct Case {
    db: TestDb,
    owner: Uuid,
    witness: Uuid,
    run: Uuid,
}

impl Case {
    async fn new() -> Self {
        let (db, owner) = database_with(&[step("a").timeout(7200)]).await;
        execute(
            &db.pool,
            "alter table pgflow.installation drop constraint lost_after_is_bounded",
        )
        .await;
        execute(
            &db.pool,
            "update pgflow.installation set lost_after = '5 seconds'",
        )
        .await;
        eventually(
            Duration::from_secs(20),
            "the server is older than that",
            async || {
                sqlx::query_scalar::<_, bool>(
                    "select pg_postmaster_start_time() < now() - interval '6 seconds'",
                )
                .fetch_one(&db.pool)
                .await
                .expect("its age can be read")
                .then_some(())
            },
        )
        .await;
        let run = start(&db.pool, "f", json!({})).await;
        claim_one(&db.pool, owner).await;
        let witness = worker(&db.pool, "f").await;
        heard(&db.pool, witness, 0, 3600).await;
        heard(&db.pool, owner, 0, 3600).await;
        Self {
            db,
            owner,
            witness,
            run,
        }
    }

    fn pool(&self) -> &PgPool {
        &self.db.pool
    }

    /// One call, as if each claim were due for a look anyway.
    async fn look(&self) -> (i32, i32, bool) {
        until_recovery_looks(self.pool()).await;
        recover(self.pool()).await
    }
}

async fn execute(pool: &PgPool, statement: &'static str) {
    sqlx::query(statement)
        .execute(pool)
        .await
        .unwrap_or_else(|error| panic!("{statement}: {error}"));
}

/// As if the worker's last heartbeat were `last` seconds old, and the first of its series `since`.
async fn heard(pool: &PgPool, worker: Uuid, last: i32, since: i32) {
    sqlx::query(
        "update pgflow.workers
         set last_heartbeat_at = clock_timestamp() - make_interval(secs => $2), started_at = now() - interval '1 day',
             heard_since = clock_timestamp() - make_interval(secs => $3)
         where worker_id = $1",
    )
    .bind(worker)
    .bind(last)
    .bind(since)
    .execute(pool)
    .await
    .expect("heartbeats can be changed");
}

async fn beat(pool: &PgPool, worker: Uuid) {
    sqlx::query("select from pgflow.worker_heartbeats(array[$1])")
        .bind(worker)
        .execute(pool)
        .await
        .expect("a worker beats");
}

#[tokio::test]
async fn the_task_of_a_dead_worker_does_not_wait_for_its_timeout() {
    let case = Case::new().await;
    heard(case.pool(), case.owner, 4, 3600).await;
    assert_eq!(case.look().await, (0, 0, false), "it may still live");
    heard(case.pool(), case.owner, 6, 3600).await;
    // No look was due: the silence alone brings it forward.
    assert_eq!(recover(case.pool()).await, (1, 0, false));
    let task = task(case.pool(), case.run, "a").await;
    assert_eq!((task.status.as_str(), task.attempts_count), ("queued", 1));
    assert_eq!(claim_one(case.pool(), case.witness).await.attempt, 2);
    assert_invariants(case.pool()).await;
}

#[tokio::test]
async fn what_a_stopped_worker_left_is_recovered_at_once() {
    let case = Case::new().await;
    sqlx::query("select pgflow.mark_worker_stopped($1)")
        .bind(case.owner)
        .execute(case.pool())
        .await
        .expect("it stops");
    assert_eq!(recover(case.pool()).await, (1, 0, false));
    assert_eq!(claim_one(case.pool(), case.witness).await.attempt, 2);
    assert_invariants(case.pool()).await;
}

#[tokio::test]
async fn what_a_removed_worker_left_is_recovered() {
    let case = Case::new().await;
    sqlx::query("delete from pgflow.workers where worker_id = $1")
        .bind(case.owner)
        .execute(case.pool())
        .await
        .expect("it is pruned");
    assert_eq!(case.look().await, (1, 0, false));
}

#[tokio::test]
async fn a_database_that_was_away_for_all_recovers_nothing_at_its_return() {
    let case = Case::new().await;
    // Both have been silent; the first of them is back.
    for worker in [case.owner, case.witness] {
        heard(case.pool(), worker, 90, 3600).await;
    }
    assert_eq!(case.look().await, (0, 0, false));
    beat(case.pool(), case.witness).await;
    assert_eq!(
        case.look().await,
        (0, 0, false),
        "the other had no time to return"
    );
    beat(case.pool(), case.owner).await;
    heard(case.pool(), case.witness, 0, 6).await;
    assert_eq!(case.look().await, (0, 0, false), "both live");
    heard(case.pool(), case.owner, 6, 6).await;
    assert_eq!(case.look().await, (1, 0, false), "it did not return");
    assert_invariants(case.pool()).await;
}

#[tokio::test]
async fn a_database_that_has_just_started_waits_for_its_workers() {
    let case = Case::new().await;
    heard(case.pool(), case.owner, 6, 3600).await;
    // Older than the server itself.
    execute(
        case.pool(),
        "update pgflow.installation set lost_after = now() - pg_postmaster_start_time() + interval '1 hour'",
    )
    .await;
    heard(case.pool(), case.owner, 360_000, 360_000).await;
    heard(case.pool(), case.witness, 0, 360_000).await;
    assert_eq!(case.look().await, (0, 0, false));
}

#[tokio::test]
async fn nobody_is_lost_while_no_worker_is_heard_of() {
    let case = Case::new().await;
    heard(case.pool(), case.owner, 60, 3600).await;
    heard(case.pool(), case.witness, 60, 3600).await;
    // As pg_cron would, in a database that all workers are cut off from.
    assert_eq!(case.look().await, (0, 0, false));
    // An operator knows better.
    let mut operator = case.pool().begin().await.expect("a session");
    let recovered: i32 =
        sqlx::query_scalar("select requeued from pgflow.recover_tasks(trust_silence => true)")
            .fetch_one(&mut *operator)
            .await
            .expect("it can be recovered");
    assert_eq!(recovered, 1);
    operator.rollback().await.expect("undone");
    // Its timeout continues to count: without workers no result can come.
    age(case.pool(), case.run, "a", 8000).await;
    assert_eq!(case.look().await, (1, 0, false));
}

#[tokio::test]
async fn a_worker_that_returns_may_report_before_its_late_attempts_are_recovered() {
    let case = Case::new().await;
    age(case.pool(), case.run, "a", 8000).await;
    heard(case.pool(), case.owner, 0, 2).await;
    assert_eq!(case.look().await, (0, 0, false));
    heard(case.pool(), case.owner, 0, 6).await;
    assert_eq!(case.look().await, (1, 0, false));
    assert_invariants(case.pool()).await;
}

#[tokio::test]
async fn an_attempt_that_its_worker_still_runs_is_left_to_it_past_its_timeout() {
    let case = Case::new().await;
    age(case.pool(), case.run, "a", 8000).await;
    let report = async |worker: Uuid, attempt: i32| {
        sqlx::query(
            "select pgflow.report_overdue_attempts($1, array[$2], array['a'], array[0], array[$3])",
        )
        .bind(worker)
        .bind(case.run)
        .bind(attempt)
        .execute(case.pool())
        .await
        .expect("it can be reported");
    };
    report(case.owner, 1).await;
    assert_eq!(case.look().await, (0, 0, false));
    execute(
        case.pool(),
        "update pgflow.overdue_attempts set reported_at = reported_at - interval '31 seconds'",
    )
    .await;
    // Not the current attempt, and not its worker.
    report(case.owner, 2).await;
    report(case.witness, 1).await;
    assert_eq!(case.look().await, (1, 0, false));
    assert_invariants(case.pool()).await;
}

#[tokio::test]
async fn a_heartbeat_after_a_silence_begins_a_new_series_and_ends_the_loss() {
    let case = Case::new().await;
    let row = async || -> (bool, bool) {
        sqlx::query_as(
            "select heard_since > now() - interval '1 minute', lost_at is not null from pgflow.workers where worker_id = $1",
        )
        .bind(case.owner)
        .fetch_one(case.pool())
        .await
        .expect("the worker can be read")
    };
    heard(case.pool(), case.owner, 2, 3600).await;
    beat(case.pool(), case.owner).await;
    assert_eq!(row().await, (false, false));
    heard(case.pool(), case.owner, 6, 3600).await;
    recover(case.pool()).await;
    assert_eq!(row().await, (false, true));
    beat(case.pool(), case.owner).await;
    assert_eq!(row().await, (true, false));
}

#[tokio::test]
async fn the_reason_says_died_of_a_worker_that_died_and_stopped_of_one_that_stopped() {
    let case = Case::new().await;
    execute(case.pool(), "update pgflow.steps set opt_max_attempts = 1").await;
    heard(case.pool(), case.owner, 6, 3600).await;
    assert_eq!(recover(case.pool()).await, (0, 1, false));
    let error = run(case.pool(), case.run).await.error_message.unwrap();
    assert!(
        error.contains("its worker died during attempt 1"),
        "{error}"
    );

    let other = start(case.pool(), "f", json!({})).await;
    claim_one(case.pool(), case.witness).await;
    sqlx::query("select pgflow.mark_worker_stopped($1)")
        .bind(case.witness)
        .execute(case.pool())
        .await
        .expect("it stops");
    assert_eq!(recover(case.pool()).await, (0, 1, false));
    let error = run(case.pool(), other).await.error_message.unwrap();
    assert!(
        error.contains("its worker stopped during attempt 1"),
        "{error}"
    );
    assert_invariants(case.pool()).await;
}

#[tokio::test]
async fn tasks_that_cannot_be_ended_are_put_behind_the_others() {
    let case = Case::new().await;
    define(case.pool(), "g", &[step("m").map().max_attempts(1)]).await;
    let dying = worker(case.pool(), "g").await;
    let broken = start(case.pool(), "g", json!(vec![1; 1100])).await;
    claim_all(case.pool(), dying).await;
    // Whoever ends a task of it fails.
    execute(
        case.pool(),
        "create function pg_temp_fail() returns trigger language plpgsql as $$ begin raise 'not this one'; end $$",
    )
    .await;
    execute(
        case.pool(),
        "create trigger broken before update of status on pgflow.step_tasks for each row
         when (new.flow_slug = 'g' and new.status = 'failed') execute function pg_temp_fail()",
    )
    .await;
    age(case.pool(), broken, "m", 9000).await;
    heard(case.pool(), dying, 6, 3600).await;
    heard(case.pool(), case.owner, 6, 3600).await;
    let mut batches = Vec::new();
    for _ in 0..2 {
        heard(case.pool(), case.witness, 0, 3600).await;
        batches.push(recover(case.pool()).await);
    }
    assert_eq!(batches, [(0, 0, true), (1, 0, false)]);
    assert_eq!(task_statuses(case.pool(), case.run, "a").await, "queued");
    assert_eq!(recover(case.pool()).await, (0, 0, false), "they wait");
}

#[tokio::test]
async fn a_worker_whose_row_somebody_holds_is_not_lost_and_silences_no_other() {
    let case = Case::new().await;
    let mut held = case.pool().begin().await.expect("a session");
    sqlx::query("select from pgflow.workers where worker_id = $1 for update")
        .bind(case.owner)
        .execute(&mut *held)
        .await
        .expect("the row is held");
    let answers: Vec<Uuid> =
        sqlx::query_scalar("select worker_id from pgflow.worker_heartbeats(array[$1, $2])")
            .bind(case.owner)
            .bind(case.witness)
            .fetch_all(case.pool())
            .await
            .expect("it does not wait");
    assert_eq!(answers.len(), 2, "both are answered");
    held.rollback().await.expect("let go");
    heard(case.pool(), case.owner, 6, 3600).await;
    let mut held = case.pool().begin().await.expect("a session");
    sqlx::query("select from pgflow.workers where worker_id = $1 for update")
        .bind(case.owner)
        .execute(&mut *held)
        .await
        .expect("the row is held");
    assert_eq!(case.look().await, (0, 0, false));
    held.rollback().await.expect("let go");
    assert_eq!(case.look().await, (1, 0, false), "now it is lost");
    assert_invariants(case.pool()).await;
}

#[tokio::test]
async fn whoever_holds_a_message_keeps_only_its_own_queue_from_recovery() {
    let case = Case::new().await;
    define(case.pool(), "g", &[step("b")]).await;
    let other = worker(case.pool(), "g").await;
    let run = start(case.pool(), "g", json!({})).await;
    claim_one(case.pool(), other).await;
    for gone in [case.owner, other] {
        sqlx::query("select pgflow.mark_worker_stopped($1)")
            .bind(gone)
            .execute(case.pool())
            .await
            .expect("it stops");
    }
    let mut held = case.pool().begin().await.expect("a session");
    sqlx::query("select from pgmq.q_f for update")
        .execute(&mut *held)
        .await
        .expect("the messages are held");
    assert_eq!(recover(case.pool()).await, (1, 0, false));
    assert_eq!(task_statuses(case.pool(), run, "b").await, "queued");
    assert_eq!(task_statuses(case.pool(), case.run, "a").await, "started");
    held.rollback().await.expect("let go");
    assert_eq!(case.look().await, (1, 0, false));
    assert_invariants(case.pool()).await;
}
