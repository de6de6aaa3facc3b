//! Faults that the TypeScript project had, by the numbers under which its users know them: each
//! test is a scenario that went wrong there.

use serde_json::{Value, json};
use sqlx::postgres::PgPool;
use uuid::Uuid;

use crate::support::TestDb;
use crate::support::flows::{
    Claimed, claim, claim_one, complete, define, fail, start, step, worker,
};
use crate::support::invariants::assert_invariants;
use crate::support::rows::{archived, messages, raised, run, show_all, step_state};
use crate::support::runs::{
    age, claim_all, database_with, everything, fail_for_good, of_step, outline, requeue,
    task_statuses,
};

/// The tasks of a run that wait or run, as `step[index] status`.
async fn active(pool: &PgPool, run_id: Uuid) -> Vec<String> {
    sqlx::query_scalar(
        "select format('%s[%s] %s', step_slug, task_index, status) from pgflow.step_tasks
         where run_id = $1 and status in ('queued', 'started') order by 1",
    )
    .bind(run_id)
    .fetch_all(pool)
    .await
    .expect("tasks can be read")
}

/// Starts the tasks of messages that a worker has read; returns their indexes.
async fn start_read(pool: &PgPool, worker: Uuid, ids: &[i64]) -> sqlx::Result<Vec<i32>> {
    sqlx::query_scalar("select task_index from pgflow.start_tasks('f', $1, $2, 'f')")
        .bind(ids)
        .bind(worker)
        .fetch_all(pool)
        .await
}

/// Expects that nothing revives what has ended: late reports, messages that a worker still holds,
/// or recovery.
async fn assert_that_it_stays_ended(pool: &PgPool, worker: Uuid, run_id: Uuid, held: &[Claimed]) {
    let before = everything(pool, "f").await;
    for task in held {
        complete(pool, task, json!(["late"])).await;
        fail(pool, task, "late").await;
        fail_for_good(pool, task, "late").await;
    }
    let ids: Vec<i64> = sqlx::query_scalar(
        "select message_id from pgflow.step_tasks
         where run_id = $1 and status not in ('queued', 'started') order by 1",
    )
    .bind(run_id)
    .fetch_all(pool)
    .await
    .expect("tasks can be read");
    assert!(!ids.is_empty());
    let started = start_read(pool, worker, &ids).await;
    assert_eq!(started.expect("nothing to start"), [0; 0]);
    assert_eq!(everything(pool, "f").await, before);

    let aged = sqlx::query(
        "with claimed as (update pgflow.claims set look_at = look_at - interval '1 hour')
         update pgflow.step_tasks
         set queued_at = queued_at - interval '1 hour', started_at = started_at - interval '1 hour'
         where run_id = $1 and started_at is not null and status not in ('queued', 'started')",
    )
    .bind(run_id)
    .execute(pool)
    .await;
    aged.expect("rows can be aged");
    let before = everything(pool, "f").await;
    assert_eq!(requeue(pool).await, 0);
    assert_eq!(everything(pool, "f").await, before);
}

#[tokio::test]
async fn upstream_638_a_skipped_step_leaves_no_active_task() {
    for (mode, expected) in [
        (
            "skip",
            "run started, m skipped: handler_failed, other started, after started",
        ),
        (
            "skip-cascade",
            "run started, m skipped: handler_failed, other started, after skipped: dependency_skipped",
        ),
    ] {
        let (db, worker) = database_with(&[
            step("m").map().max_attempts(1).when_exhausted(mode),
            step("other").start_delay(3600),
            step("after").deps(&["m"]),
        ])
        .await;
        let run_id = start(&db.pool, "f", json!([1, 2, 3, 4])).await;
        let held = claim(&db.pool, worker, 3).await;
        complete(&db.pool, &held[1], json!("kept")).await;
        assert_eq!(fail(&db.pool, &held[0], "no").await, "failed");

        assert_eq!(
            task_statuses(&db.pool, run_id, "m").await,
            "failed, completed, skipped, skipped"
        );
        assert_eq!(outline(&db.pool, run_id).await, expected);
        assert_that_it_stays_ended(&db.pool, worker, run_id, &held).await;
        assert_invariants(&db.pool).await;

        show_all(&db.pool, "f").await;
        for task in claim_all(&db.pool, worker).await {
            complete(&db.pool, &task, json!(1)).await;
        }
        assert_eq!(run(&db.pool, run_id).await.status, "completed");
        assert_eq!(active(&db.pool, run_id).await, [""; 0]);
        assert_invariants(&db.pool).await;
    }
}

#[tokio::test]
async fn upstream_645_a_failed_run_leaves_no_active_task() {
    // The three ways in which a run fails: out of attempts, an output of the wrong type, an unmet
    // condition.
    let ways: [(Option<Value>, &str, &str); 3] = [
        (None, "failed", "no"),
        (Some(json!({})), "failed", "[TYPE_VIOLATION]"),
        (Some(json!([2])), "completed", "Condition not met"),
    ];
    for (output, status, error) in ways {
        let (db, worker) = database_with(&[
            step("culprit"),
            step("m").map(),
            step("later").start_delay(3600),
            step("over").map().deps(&["culprit"]),
            step("strict")
                .deps(&["culprit"])
                .required(json!({"culprit": [1]}))
                .when_unmet("fail"),
        ])
        .await;
        let run_id = start(&db.pool, "f", json!([1, 2, 3])).await;
        let held = claim(&db.pool, worker, 3).await;
        let culprit = of_step(&held, "culprit");
        complete(&db.pool, &held[1], json!("kept")).await;
        let told = match output {
            None => fail_for_good(&db.pool, culprit, "no").await,
            Some(output) => complete(&db.pool, culprit, output).await,
        };
        assert_eq!(told, status);

        let failed = run(&db.pool, run_id).await;
        assert_eq!(failed.status, "failed");
        let message = failed.error_message.expect("an error");
        assert!(message.starts_with(error), "{message}");
        assert_eq!(active(&db.pool, run_id).await, [""; 0]);
        assert_eq!(task_statuses(&db.pool, run_id, "culprit").await, status);
        assert_eq!(
            task_statuses(&db.pool, run_id, "m").await,
            "completed, cancelled, cancelled"
        );
        assert_eq!(task_statuses(&db.pool, run_id, "later").await, "cancelled");
        assert_eq!(messages(&db.pool, "f").await, []);
        assert_eq!(archived(&db.pool, "f").await.len(), 5);
        assert_that_it_stays_ended(&db.pool, worker, run_id, &held).await;
        assert_invariants(&db.pool).await;
    }
}

/// Rows that were ended manually, or by an older system: their tasks still look as if they ran.
#[tokio::test]
async fn upstream_645_recovery_takes_no_task_of_an_ended_run_or_step() {
    for ended in [
        "update pgflow.runs set status = 'failed', failed_at = clock_timestamp()",
        "update pgflow.step_states set status = 'failed', failed_at = clock_timestamp()",
        "update pgflow.step_states set status = 'skipped', skipped_at = clock_timestamp(), skip_reason = 'handler_failed', remaining_tasks = null",
    ] {
        let (db, worker) = database_with(&[step("m").map()]).await;
        let run_id = start(&db.pool, "f", json!([1, 2])).await;
        claim_one(&db.pool, worker).await;
        sqlx::query(ended).execute(&db.pool).await.expect("ended");
        age(&db.pool, run_id, "m", 3600).await;
        let before = everything(&db.pool, "f").await;
        assert_eq!(requeue(&db.pool).await, 0, "{ended}");
        assert_eq!(everything(&db.pool, "f").await, before, "{ended}");
    }
}

#[tokio::test]
async fn upstream_621_a_task_is_stalled_by_the_timeout_of_its_step() {
    let (db, worker) = database_with(&[
        step("short").timeout(5),
        step("long").timeout(600),
        step("of_flow"),
    ])
    .await;
    let run_id = start(&db.pool, "f", json!({})).await;
    let first = claim_all(&db.pool, worker).await;
    assert_eq!(
        ["short", "long", "of_flow"].map(|slug| of_step(&first, slug).timeout),
        [5, 600, 60]
    );
    // The age of all tasks, and which of them are recovered at it: half a minute after their own
    // timeout.
    let mut age_now = 0;
    for (at, recovered) in [
        (25, ""),
        (40, "short"),
        (80, ""),
        (95, "of_flow"),
        (620, ""),
        (640, "long"),
    ] {
        for slug in ["short", "long", "of_flow"] {
            if task_statuses(&db.pool, run_id, slug).await == "started" {
                age(&db.pool, run_id, slug, at - age_now).await;
            }
        }
        age_now = at;
        let expected = i32::from(!recovered.is_empty());
        assert_eq!(requeue(&db.pool).await, expected, "at {at} s");
        if !recovered.is_empty() {
            assert_eq!(task_statuses(&db.pool, run_id, recovered).await, "queued");
            let again = claim_one(&db.pool, worker).await;
            assert_eq!((again.step_slug.as_str(), again.attempt), (recovered, 2));
            assert_eq!(complete(&db.pool, &again, json!(at)).await, "completed");
        }
    }
    assert_eq!(
        run(&db.pool, run_id).await.output,
        Some(json!({"short": 40, "of_flow": 95, "long": 640}))
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn upstream_656_a_claim_hides_its_messages_or_does_not_happen() {
    let db = TestDb::new().await;
    define(&db.pool, "f", &[step("m").map().timeout(9)]).await;
    let run_id = start(&db.pool, "f", json!([0, 1, 2])).await;
    let (first, second) = (worker(&db.pool, "f").await, worker(&db.pool, "f").await);

    // What a short read hid for a moment is hidden for as long as the attempt may take, by both
    // ways to claim.
    let read: Vec<i64> = sqlx::query_scalar("select msg_id from pgmq.read('f', 1, 1)")
        .fetch_all(&db.pool)
        .await
        .expect("the queue can be read");
    assert_eq!(
        start_read(&db.pool, first, &read).await.expect("started"),
        [0]
    );
    assert_eq!(claim_one(&db.pool, first).await.task_index, 1);
    let hidden: Vec<i32> = sqlx::query_scalar(
        "select floor(extract(epoch from q.vt - t.started_at))::int
         from pgflow.step_tasks t join pgmq.q_f q on q.msg_id = t.message_id where t.status = 'started'",
    )
    .fetch_all(&db.pool)
    .await
    .expect("times can be read");
    assert_eq!(hidden, [11, 11]);

    // A message of a started task that comes into sight anyway starts nothing and counts no
    // attempt.
    let before = step_state(&db.pool, run_id, "m").await;
    show_all(&db.pool, "f").await;
    assert_eq!(
        start_read(&db.pool, second, &read).await.expect("started"),
        [0; 0]
    );
    let rest = claim(&db.pool, second, 10).await;
    assert_eq!(rest.iter().map(|t| t.task_index).collect::<Vec<_>>(), [2]);
    let attempts: Vec<(i32, Option<Uuid>)> = sqlx::query_as(
        "select attempts_count, last_worker_id from pgflow.step_tasks order by task_index",
    )
    .fetch_all(&db.pool)
    .await
    .expect("tasks can be read");
    assert_eq!(
        attempts,
        [(1, Some(first)), (1, Some(first)), (1, Some(second))]
    );
    assert_eq!(step_state(&db.pool, run_id, "m").await, before);
    assert_invariants(&db.pool).await;

    // A claim that misses one of its messages changes none of the others.
    let run_id = start(&db.pool, "f", json!([0, 1])).await;
    let ids: Vec<i64> = sqlx::query_scalar("select msg_id from pgmq.read('f', 30, 10)")
        .fetch_all(&db.pool)
        .await
        .expect("the queue can be read");
    sqlx::query("select pgmq.delete('f', $1)")
        .bind(ids[1])
        .execute(&db.pool)
        .await
        .expect("lost");
    let before = everything(&db.pool, "f").await;
    assert_eq!(
        raised(start_read(&db.pool, second, &ids).await),
        "PF008: queue \"f\" has 1 of the 2 messages that a claim was to hide"
    );
    assert_eq!(everything(&db.pool, "f").await, before);
    assert_eq!(task_statuses(&db.pool, run_id, "m").await, "queued, queued");
}
