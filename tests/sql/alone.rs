//! Tasks whose attempts are used up, and whose last one ended with its worker: one more, alone.

use serde_json::json;
use sqlx::{AssertSqlSafe, PgPool};
use uuid::Uuid;

use crate::support::TestDb;
use crate::support::flows::{
    Claimed, Step, claim, claim_one, complete, define, define_with_step_queues, fail, postpone,
    start, step, step_worker, worker,
};
use crate::support::invariants::assert_invariants;
use crate::support::rows::{show_all, task};
use crate::support::runs::{
    age, database_with, outline, recover, requeue, task_statuses, until_recovery_looks,
};

async fn execute(pool: &PgPool, sql: &str) {
    sqlx::raw_sql(AssertSqlSafe(sql.to_owned()))
        .execute(pool)
        .await
        .unwrap_or_else(|error| panic!("{sql}: {error}"));
}

/// A worker ends, and what it ran is recovered.
async fn die(pool: &PgPool, worker: Uuid) {
    let sql = format!("select pgflow.mark_worker_stopped('{worker}')");
    execute(pool, &sql).await;
    until_recovery_looks(pool).await;
    recover(pool).await;
}

/// The workers belong to one process.
async fn share_a_process(pool: &PgPool, workers: &[Uuid], pid: i32) {
    for worker in workers {
        let sql = format!("select pgflow.set_worker_process('{worker}', 'host', {pid})");
        execute(pool, &sql).await;
    }
}

/// A map of `elements`, of which element 0 has used up its two attempts by the deaths of its
/// workers. The others wait.
async fn poisoned(elements: usize) -> (TestDb, Uuid) {
    let (db, first) = database_with(&[step("m").map().max_attempts(2)]).await;
    let input: Vec<usize> = (0..elements).collect();
    let run_id = start(&db.pool, "f", json!(input)).await;
    let second = worker(&db.pool, "f").await;
    for worker in [first, second] {
        // Recovered messages are visible from then on: the youngest in the queue.
        show_all(&db.pool, "f").await;
        assert_eq!(claim_one(&db.pool, worker).await.task_index, 0);
        die(&db.pool, worker).await;
    }
    show_all(&db.pool, "f").await;
    (db, run_id)
}

/// The message of element 0 can't be read for now.
async fn put_aside(pool: &PgPool) {
    execute(
        pool,
        "update pgmq.q_f set vt = vt + interval '1 hour' where msg_id = 1",
    )
    .await;
}

async fn bring_back(pool: &PgPool) {
    execute(
        pool,
        "update pgmq.q_f set vt = vt - interval '1 hour' where msg_id = 1",
    )
    .await;
}

fn indexes(claimed: &[Claimed]) -> Vec<i32> {
    claimed.iter().map(|task| task.task_index).collect()
}

#[tokio::test]
async fn a_task_whose_last_attempt_ended_with_its_worker_gets_one_more_alone() {
    let (db, run_id) = poisoned(4).await;
    let worker = worker(&db.pool, "f").await;
    let alone = claim(&db.pool, worker, 10).await;
    assert_eq!(indexes(&alone), [0], "nothing else with it");
    assert_eq!((alone[0].attempt, alone[0].max_attempts), (3, 3));
    assert_eq!(claim(&db.pool, worker, 10).await, [], "nor beside it");
    assert_eq!(complete(&db.pool, &alone[0], json!(0)).await, "completed");

    let others = claim(&db.pool, worker, 10).await;
    assert_eq!(indexes(&others), [1, 2, 3]);
    for task in &others {
        complete(&db.pool, task, json!(1)).await;
    }
    assert_eq!(
        outline(&db.pool, run_id).await,
        "run completed, m completed"
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn who_dies_alone_is_given_up_with_the_true_reason() {
    let (db, run_id) = poisoned(2).await;
    let dying = worker(&db.pool, "f").await;
    assert_eq!(indexes(&claim(&db.pool, dying, 10).await), [0]);
    die(&db.pool, dying).await;
    assert_eq!(outline(&db.pool, run_id).await, "run failed, m failed");
    let culprit: (String, i32, String, bool) = sqlx::query_as(
        "select status, attempts_count, error_message, permanently_stalled_at is not null from pgflow.step_tasks where task_index = 0",
    )
    .fetch_one(&db.pool)
    .await
    .expect("the task can be read");
    let reason = "stalled: its worker stopped during attempt 3, in which it ran alone, without giving the task back: \
         the input of step \"m\", task 0, brings the process down";
    assert_eq!(culprit, ("failed".to_owned(), 3, reason.to_owned(), true));
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn one_attempt_is_one_attempt() {
    let (db, worker) = database_with(&[step("a").max_attempts(1)]).await;
    let run_id = start(&db.pool, "f", json!({})).await;
    claim_one(&db.pool, worker).await;
    die(&db.pool, worker).await;
    assert_eq!(outline(&db.pool, run_id).await, "run failed, a failed");
    let task = task(&db.pool, run_id, "a").await;
    assert_eq!(task.attempts_count, 1);
    assert_eq!(
        task.error_message.as_deref(),
        Some(
            "stalled: its worker stopped during attempt 1 without giving the task back, and no other attempt follows"
        )
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn who_is_late_on_a_worker_that_lives_gets_none_alone() {
    let (db, worker) = database_with(&[step("a").max_attempts(2)]).await;
    let run_id = start(&db.pool, "f", json!({})).await;
    for requeued in [1, 0] {
        claim_one(&db.pool, worker).await;
        age(&db.pool, run_id, "a", 3600).await;
        assert_eq!(requeue(&db.pool).await, requeued);
    }
    assert_eq!(
        task(&db.pool, run_id, "a").await.error_message.as_deref(),
        Some(
            "stalled: attempt 2 was not reported within its timeout and 30 s more, and no other attempt follows"
        )
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn failures_and_deaths_share_one_budget() {
    let (db, first) = database_with(&[step("a").max_attempts(3)]).await;
    let run_id = start(&db.pool, "f", json!({})).await;
    fail(&db.pool, &claim_one(&db.pool, first).await, "500").await;
    let put_off = claim_one(&db.pool, first).await;
    postpone(&db.pool, &put_off, "0", "429")
        .await
        .expect("postponed");
    claim_one(&db.pool, first).await;
    die(&db.pool, first).await;
    let second = worker(&db.pool, "f").await;
    let third = claim_one(&db.pool, second).await;
    assert_eq!((third.attempt, third.max_attempts), (4, 4));
    assert_eq!(fail(&db.pool, &third, "500").await, "failed");
    assert_eq!(outline(&db.pool, run_id).await, "run failed, a failed");
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_busy_worker_makes_room_and_an_idle_one_is_faster() {
    let (db, _) = poisoned(6).await;
    put_aside(&db.pool).await;
    let busy = worker(&db.pool, "f").await;
    let running = claim(&db.pool, busy, 2).await;
    assert_eq!(indexes(&running), [1, 2]);
    bring_back(&db.pool).await;
    assert_eq!(claim(&db.pool, busy, 10).await, [], "it makes room");
    complete(&db.pool, &running[0], json!(1)).await;
    assert_eq!(claim(&db.pool, busy, 10).await, [], "one still runs");
    complete(&db.pool, &running[1], json!(1)).await;
    let alone = claim(&db.pool, busy, 10).await;
    assert_eq!(indexes(&alone), [0]);
    postpone(&db.pool, &alone[0], "0", "429")
        .await
        .expect("postponed");

    // Again, and another worker has nothing to do meanwhile.
    put_aside(&db.pool).await;
    let running = claim(&db.pool, busy, 1).await;
    assert_eq!(indexes(&running), [3]);
    bring_back(&db.pool).await;
    assert_eq!(claim(&db.pool, busy, 10).await, []);
    let idle = worker(&db.pool, "f").await;
    let alone = claim(&db.pool, idle, 10).await;
    assert_eq!(indexes(&alone), [0]);
    assert_eq!((alone[0].attempt, alone[0].max_attempts), (4, 4));
    assert_eq!(
        indexes(&claim(&db.pool, busy, 1).await),
        [4],
        "it goes on, since its room is not needed"
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn one_process_makes_room_and_the_others_go_on() {
    let (db, _) = poisoned(6).await;
    put_aside(&db.pool).await;
    let (first, second) = (worker(&db.pool, "f").await, worker(&db.pool, "f").await);
    let running = claim(&db.pool, first, 1).await;
    claim(&db.pool, second, 1).await;
    bring_back(&db.pool).await;
    assert_eq!(claim(&db.pool, first, 10).await, []);
    assert_eq!(indexes(&claim(&db.pool, second, 2).await), [3]);
    let hidden: bool = sqlx::query_scalar(
        "select vt > now() and vt < now() + interval '2 seconds' from pgmq.q_f where msg_id = 1",
    )
    .fetch_one(&db.pool)
    .await
    .expect("the queue can be read");
    assert!(hidden, "others don't read it again and again");
    // That it is hidden from the others doesn't keep the first one waiting.
    complete(&db.pool, &running[0], json!(1)).await;
    assert_eq!(indexes(&claim(&db.pool, first, 10).await), [0]);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn when_the_worker_that_makes_room_ends_another_does() {
    for end in [
        "update pgflow.workers set stopped_at = now() where worker_id = ",
        "update pgflow.workers set deprecated_at = now() where worker_id = ",
        "update pgflow.workers set last_heartbeat_at = now() - interval '1 hour' where worker_id = ",
        "update pgflow.workers set alone_since = now() - interval '1 hour' where worker_id = ",
        "delete from pgflow.workers where worker_id = ",
    ] {
        let (db, _) = poisoned(5).await;
        put_aside(&db.pool).await;
        let (first, second) = (worker(&db.pool, "f").await, worker(&db.pool, "f").await);
        claim(&db.pool, first, 1).await;
        let running = claim(&db.pool, second, 1).await;
        bring_back(&db.pool).await;
        assert_eq!(claim(&db.pool, first, 10).await, []);
        execute(&db.pool, &format!("{end}'{first}'")).await;
        assert_eq!(claim(&db.pool, second, 10).await, [], "after {end}");
        complete(&db.pool, &running[0], json!(1)).await;
        assert_eq!(indexes(&claim(&db.pool, second, 10).await), [0]);
        assert_invariants(&db.pool).await;
    }
}

/// As in a program that serves each step of a flow.
#[tokio::test]
async fn nothing_of_the_same_process_runs_beside_it_whichever_queue_it_is_of() {
    let db = TestDb::new().await;
    let steps: [Step; 2] = [step("a").max_attempts(2), step("b").map().max_attempts(2)];
    define_with_step_queues(&db.pool, "f", &steps).await;
    let run_id = start(&db.pool, "f", json!([1, 2, 3])).await;
    for _ in 0..2 {
        let dying = step_worker(&db.pool, "f", "a").await;
        claim_one(&db.pool, dying).await;
        die(&db.pool, dying).await;
    }
    let (of_a, of_b) = (
        step_worker(&db.pool, "f", "a").await,
        step_worker(&db.pool, "f", "b").await,
    );
    let elsewhere = step_worker(&db.pool, "f", "b").await;
    share_a_process(&db.pool, &[of_a, of_b], 1).await;
    share_a_process(&db.pool, &[elsewhere], 2).await;

    let beside = claim_one(&db.pool, of_b).await;
    assert_eq!(
        claim(&db.pool, of_a, 10).await,
        [],
        "the other worker runs a task"
    );
    assert_eq!(claim(&db.pool, of_b, 10).await, [], "which gets no more");
    complete(&db.pool, &beside, json!(1)).await;
    assert_eq!(claim(&db.pool, of_b, 10).await, []);
    assert_eq!(
        claim(&db.pool, of_a, 10).await,
        [],
        "a claim may be under way"
    );
    execute(
        &db.pool,
        "update pgflow.workers set alone_since = alone_since - interval '1 second'",
    )
    .await;
    assert_eq!(claim(&db.pool, of_b, 10).await, []);
    let alone = claim_one(&db.pool, of_a).await;
    assert_eq!((&*alone.step_slug, alone.attempt), ("a", 3));
    assert_eq!(claim(&db.pool, of_b, 10).await, []);
    assert_eq!(
        claim(&db.pool, elsewhere, 1).await.len(),
        1,
        "another process goes on"
    );
    complete(&db.pool, &alone, json!(1)).await;
    assert_eq!(claim(&db.pool, of_b, 10).await.len(), 1);
    assert_eq!(
        outline(&db.pool, run_id).await,
        "run started, a completed, b started"
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_process_whose_worker_of_that_queue_ends_makes_room_no_longer() {
    let db = TestDb::new().await;
    define(&db.pool, "f", &[step("a").max_attempts(2)]).await;
    define(&db.pool, "g", &[step("b").map()]).await;
    start(&db.pool, "f", json!({})).await;
    start(&db.pool, "g", json!([1, 2])).await;
    for _ in 0..2 {
        let dying = worker(&db.pool, "f").await;
        claim_one(&db.pool, dying).await;
        die(&db.pool, dying).await;
    }
    let (of_f, of_g) = (worker(&db.pool, "f").await, worker(&db.pool, "g").await);
    share_a_process(&db.pool, &[of_f, of_g], 1).await;
    claim_one(&db.pool, of_g).await;
    assert_eq!(claim(&db.pool, of_f, 10).await, []);
    assert_eq!(claim(&db.pool, of_g, 10).await, []);
    execute(
        &db.pool,
        &format!("select pgflow.mark_worker_stopped('{of_f}')"),
    )
    .await;
    assert_eq!(claim(&db.pool, of_g, 10).await.len(), 1);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn several_such_tasks_run_one_after_the_other() {
    let (db, first) = database_with(&[step("m").map().max_attempts(2)]).await;
    let run_id = start(&db.pool, "f", json!([0, 1, 2])).await;
    let second = worker(&db.pool, "f").await;
    for worker in [first, second] {
        assert_eq!(claim(&db.pool, worker, 10).await.len(), 3);
        die(&db.pool, worker).await;
    }
    let third = worker(&db.pool, "f").await;
    let mut seen = Vec::new();
    for _ in 0..3 {
        let alone = claim(&db.pool, third, 10).await;
        assert_eq!(alone.len(), 1);
        assert_eq!(claim(&db.pool, third, 10).await, []);
        complete(&db.pool, &alone[0], json!(1)).await;
        seen.extend(indexes(&alone));
    }
    seen.sort_unstable();
    assert_eq!(seen, [0, 1, 2]);
    assert_eq!(
        outline(&db.pool, run_id).await,
        "run completed, m completed"
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_task_that_is_cancelled_or_whose_message_goes_is_waited_for_no_longer() {
    for gone in [
        "select pgmq.delete('f', 1)",
        "update pgflow.step_tasks set status = 'cancelled' where task_index = 0",
    ] {
        let (db, _) = poisoned(4).await;
        put_aside(&db.pool).await;
        let busy = worker(&db.pool, "f").await;
        let running = claim(&db.pool, busy, 1).await;
        bring_back(&db.pool).await;
        assert_eq!(claim(&db.pool, busy, 10).await, []);
        execute(&db.pool, gone).await;
        complete(&db.pool, &running[0], json!(1)).await;
        let mut next = claim(&db.pool, busy, 10).await;
        if next.is_empty() {
            // That the message is gone is found by a claim of its own.
            next = claim(&db.pool, busy, 10).await;
        }
        assert_eq!(indexes(&next), [2, 3], "after {gone}");
    }
}

#[tokio::test]
async fn a_worker_that_reads_its_queue_by_itself_runs_it_alone_too() {
    const START: &str =
        "select task_index from pgflow.start_tasks('f', $1, $2, 'f') order by task_index";
    let (db, _) = poisoned(4).await;
    let worker = worker(&db.pool, "f").await;
    let start_tasks = async |ids: &[i64]| -> Vec<i32> {
        sqlx::query_scalar(START)
            .bind(ids)
            .bind(worker)
            .fetch_all(&db.pool)
            .await
            .expect("tasks can be started")
    };
    let finish = async |index: i32| {
        let sql = format!(
            "select pgflow.complete_task(run_id, step_slug, task_index, '1') from pgflow.step_tasks where task_index = {index}"
        );
        execute(&db.pool, &sql).await;
    };
    assert_eq!(start_tasks(&[2]).await, [1]);
    assert!(start_tasks(&[1, 3]).await.is_empty(), "it makes room");
    assert!(start_tasks(&[3]).await.is_empty());
    finish(1).await;
    assert!(start_tasks(&[3]).await.is_empty());
    assert_eq!(start_tasks(&[1, 3]).await, [0]);
    assert!(start_tasks(&[3]).await.is_empty());
    finish(0).await;
    assert_eq!(start_tasks(&[3, 4]).await, [2, 3]);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn more_attempts_that_are_allowed_later_are_made_alone_as_well() {
    let (db, run_id) = poisoned(2).await;
    execute(
        &db.pool,
        "select pgflow.tune_flow('f', 'm', max_attempts => 4)",
    )
    .await;
    let dying = worker(&db.pool, "f").await;
    assert_eq!(indexes(&claim(&db.pool, dying, 10).await), [0]);
    die(&db.pool, dying).await;
    assert_eq!(task_statuses(&db.pool, run_id, "m").await, "queued, queued");
    show_all(&db.pool, "f").await;
    let next = worker(&db.pool, "f").await;
    let alone = claim(&db.pool, next, 10).await;
    assert_eq!(indexes(&alone), [0]);
    assert_eq!((alone[0].attempt, alone[0].max_attempts), (4, 4));
    assert_invariants(&db.pool).await;
}
