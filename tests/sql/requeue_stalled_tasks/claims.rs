//! Claims are in `pgflow.claims` while any of their tasks runs: recovery finds the tasks there and
//! nowhere else.

use serde_json::json;
use sqlx::postgres::PgPool;
use sqlx::types::chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::support::flows::{claim, claim_one, complete, fail, start, step};
use crate::support::invariants::assert_invariants;
use crate::support::rows::{count, raised, show_all, task};
use crate::support::runs::{
    Item, age, claim_all, complete_batch, database_with, recover, requeue, task_statuses,
    until_recovery_looks,
};
use crate::support::sessions::holding;

/// A claim: whose, whether it is to be looked at after 30 seconds, since when, and its tasks.
type Row = (Uuid, bool, DateTime<Utc>, Vec<Uuid>, Vec<String>, Vec<i32>);

/// Returns the number of tasks of each claim, oldest claim first.
async fn claims(pool: &PgPool) -> Vec<i32> {
    sqlx::query_scalar("select cardinality(run_ids) from pgflow.claims order by claim_id")
        .fetch_all(pool)
        .await
        .expect("claims can be read")
}

/// In how many seconds recovery looks at the one claim.
async fn next_look(pool: &PgPool) -> f64 {
    sqlx::query_scalar(
        "select extract(epoch from look_at - clock_timestamp())::float8 from pgflow.claims",
    )
    .fetch_one(pool)
    .await
    .expect("there is one claim")
}

/// Lets recovery look at every claim.
async fn look(pool: &PgPool) -> i32 {
    until_recovery_looks(pool).await;
    requeue(pool).await
}

/// Claims of so many tasks each, which have ended; the first is the youngest.
async fn insert_ended(pool: &PgPool, worker: Uuid, ended: Uuid, number: i32, tasks: i32) {
    sqlx::query(
        "insert into pgflow.claims (worker_id, claimed_at, look_at, run_ids, step_slugs, task_indexes)
         select $1, at, at, array_fill($2, array[$4]), array_fill('a'::text, array[$4]), array_fill(0, array[$4])
         from (select now() - make_interval(secs => n) as at from generate_series(1, $3) n) claimed",
    )
    .bind(worker)
    .bind(ended)
    .bind(number)
    .bind(tasks)
    .execute(pool)
    .await
    .expect("claims can be inserted");
}

#[tokio::test]
async fn a_claim_says_what_was_claimed_and_is_looked_at_after_half_a_minute() {
    let (db, worker) = database_with(&[step("m").map(), step("a")]).await;
    let run_id = start(&db.pool, "f", json!([1, 2])).await;
    let claimed = claim_all(&db.pool, worker).await;
    let row: Row = sqlx::query_as(
        "select worker_id, look_at = claimed_at + interval '30 seconds', claimed_at, run_ids, step_slugs, task_indexes from pgflow.claims",
    )
    .fetch_one(&db.pool)
    .await
    .expect("there is one claim");
    assert_eq!((row.0, row.1), (worker, true));
    assert!(claimed.iter().all(|task| task.started_at == row.2));
    assert_eq!(row.3, [run_id; 3]);
    let mut named: Vec<_> = row.4.into_iter().zip(row.5).collect();
    named.sort();
    let expected = [("a", 0), ("m", 0), ("m", 1)];
    assert_eq!(named, expected.map(|(step, n)| (step.to_owned(), n)));
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_claim_that_fails_leaves_none() {
    let (db, worker) = database_with(&[step("a")]).await;
    let run_id = start(&db.pool, "f", json!({})).await;
    let message = task(&db.pool, run_id, "a").await.message_id;
    sqlx::query("select pgmq.delete('f', $1)")
        .bind(message)
        .execute(&db.pool)
        .await
        .expect("the message can be deleted");
    let started = sqlx::query("select pgflow.start_tasks('f', array[$1], $2, 'f')")
        .bind(message)
        .bind(worker)
        .execute(&db.pool)
        .await;
    let error = raised(started);
    assert!(error.starts_with("PF008"), "{error}");
    assert_eq!(claims(&db.pool).await, [0; 0]);
}

#[tokio::test]
async fn a_claim_stays_while_one_of_its_tasks_runs_and_goes_with_the_last() {
    let (db, worker) = database_with(&[step("m").map()]).await;
    start(&db.pool, "f", json!([1, 2, 3])).await;
    let claimed = claim_all(&db.pool, worker).await;
    for (n, task) in claimed.iter().enumerate() {
        assert_eq!(look(&db.pool).await, 0);
        assert_eq!(claims(&db.pool).await, [3], "{n} have ended");
        assert_invariants(&db.pool).await;
        complete(&db.pool, task, json!(1)).await;
    }
    assert_eq!(requeue(&db.pool).await, 0);
    assert_eq!(claims(&db.pool).await, [3], "it is not looked at yet");
    assert_eq!(look(&db.pool).await, 0);
    assert_eq!(claims(&db.pool).await, [0; 0]);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_claim_is_looked_at_again_in_15_seconds_or_at_the_first_deadline_of_its_tasks() {
    let (db, worker) = database_with(&[step("long").timeout(600), step("short").timeout(40)]).await;
    let run_id = start(&db.pool, "f", json!({})).await;
    let claimed = claim_all(&db.pool, worker).await;
    look(&db.pool).await;
    let next = next_look(&db.pool).await;
    assert!((0.0..=15.0).contains(&next), "{next}");
    age(&db.pool, run_id, "short", 62).await;
    look(&db.pool).await;
    let next = next_look(&db.pool).await;
    assert!(next <= 8.0, "it has 8 seconds left: {next}");
    // What has ended does not matter.
    let short = claimed.iter().find(|task| task.step_slug == "short");
    complete(&db.pool, short.expect("it was claimed"), json!(1)).await;
    look(&db.pool).await;
    let exactly: bool =
        sqlx::query_scalar("select look_at - now() < interval '15 seconds' from pgflow.claims")
            .fetch_one(&db.pool)
            .await
            .expect("there is one claim");
    assert!(exactly);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_task_that_started_twice_is_in_two_claims_and_recovered_once() {
    let (db, worker) = database_with(&[step("a"), step("b")]).await;
    let run_id = start(&db.pool, "f", json!({})).await;
    claim_all(&db.pool, worker).await;
    age(&db.pool, run_id, "a", 3600).await;
    assert_eq!(requeue(&db.pool).await, 1);
    claim_one(&db.pool, worker).await;
    assert_eq!(claims(&db.pool).await, [2, 1]);
    age(&db.pool, run_id, "a", 3600).await;
    assert_eq!(requeue(&db.pool).await, 1);
    assert_eq!(task(&db.pool, run_id, "a").await.status, "queued");
    assert_eq!(look(&db.pool).await, 0);
    assert_eq!(claims(&db.pool).await, [2], "`b` still runs");
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_batch_ends_with_the_claim_that_makes_it_full() {
    let (db, worker) = database_with(&[step("m").map()]).await;
    let run_id = start(&db.pool, "f", json!(vec![1; 1300])).await;
    for tasks in [900, 200, 200] {
        assert_eq!(
            claim(&db.pool, worker, tasks).await.len(),
            usize::try_from(tasks).unwrap()
        );
    }
    age(&db.pool, run_id, "m", 3600).await;
    assert_eq!(recover(&db.pool).await, (1100, 0, true));
    assert_invariants(&db.pool).await;
    assert_eq!(recover(&db.pool).await, (200, 0, false));
    let statuses = task_statuses(&db.pool, run_id, "m").await;
    assert!(!statuses.contains("started"));
    until_recovery_looks(&db.pool).await;
    assert_eq!(recover(&db.pool).await, (0, 0, false));
    assert_eq!(claims(&db.pool).await, [0; 0]);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn one_call_of_the_public_function_recovers_batch_after_batch() {
    let (db, worker) = database_with(&[step("m").map()]).await;
    let run_id = start(&db.pool, "f", json!(vec![1; 2500])).await;
    while !claim(&db.pool, worker, 500).await.is_empty() {}
    age(&db.pool, run_id, "m", 3600).await;
    assert_eq!(requeue(&db.pool).await, 2500);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn very_many_ended_claims_are_removed_in_several_calls_that_recover_meanwhile() {
    let (db, worker) = database_with(&[step("a")]).await;
    let ended = start(&db.pool, "f", json!({})).await;
    complete(&db.pool, &claim_one(&db.pool, worker).await, json!(1)).await;
    let stalled = start(&db.pool, "f", json!({})).await;
    claim_one(&db.pool, worker).await;
    look(&db.pool).await;
    assert_eq!(claims(&db.pool).await, [1]);

    // As old as the stalled one, or older; a call looks at 10,000.
    insert_ended(&db.pool, worker, ended, 12_000, 1).await;
    age(&db.pool, stalled, "a", 3600).await;
    age(&db.pool, ended, "a", 36_000).await;
    assert_eq!(
        recover(&db.pool).await,
        (0, 0, true),
        "10,000 others come before it"
    );
    assert_eq!(claims(&db.pool).await.len(), 2001);
    assert_eq!(recover(&db.pool).await, (1, 0, false));
    assert_eq!(claims(&db.pool).await.len(), 1);
    until_recovery_looks(&db.pool).await;
    assert_eq!(recover(&db.pool).await, (0, 0, false));
    assert_eq!(claims(&db.pool).await, [0; 0]);

    // Or at no further one once 200,000 tasks are together.
    for (number, tasks, left) in [(210, 1000, 10), (2, 250_000, 1)] {
        insert_ended(&db.pool, worker, ended, number, tasks).await;
        for left in [left, 0] {
            assert_eq!(recover(&db.pool).await, (0, 0, left > 0));
            assert_eq!(claims(&db.pool).await.len(), left);
        }
    }
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn claims_whose_tasks_were_given_back_failed_or_removed_go() {
    let (db, worker) = database_with(&[step("a").base_delay(3600)]).await;
    for n in 0..3 {
        let run_id = start(&db.pool, "f", json!({})).await;
        let claimed = claim_one(&db.pool, worker).await;
        match n {
            0 => assert_eq!(fail(&db.pool, &claimed, "again").await, "queued"),
            1 => {
                let released: i32 = sqlx::query_scalar(
                    "select pgflow.release_tasks($1, array[$2], array['a'], array[0], array[1])",
                )
                .bind(worker)
                .bind(run_id)
                .fetch_one(&db.pool)
                .await
                .expect("it can be given back");
                assert_eq!(released, 1);
                complete(&db.pool, &claim_one(&db.pool, worker).await, json!(1)).await;
            }
            _ => {
                complete(&db.pool, &claimed, json!(1)).await;
                for table in ["step_tasks", "step_states", "runs"] {
                    let delete = format!("delete from pgflow.{table} where run_id = $1");
                    sqlx::query(sqlx::AssertSqlSafe(delete))
                        .bind(run_id)
                        .execute(&db.pool)
                        .await
                        .expect("it can be removed");
                }
            }
        }
    }
    assert_eq!(claims(&db.pool).await, [1; 4]);
    assert_eq!(look(&db.pool).await, 0);
    assert_eq!(claims(&db.pool).await, [0; 0]);
    show_all(&db.pool, "f").await;
    let again = claim(&db.pool, worker, 10).await;
    assert_eq!(again.len(), 1);
    assert_eq!(claims(&db.pool).await, [1]);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_claim_that_somebody_holds_is_left_for_the_next_call() {
    let (db, worker) = database_with(&[step("a")]).await;
    let run_id = start(&db.pool, "f", json!({})).await;
    claim_one(&db.pool, worker).await;
    age(&db.pool, run_id, "a", 3600).await;
    let held = holding(&db.pool, "select from pgflow.claims for update").await;
    assert_eq!(requeue(&db.pool).await, 0);
    held.rollback().await.expect("it is let go");
    assert_eq!(requeue(&db.pool).await, 1);
    assert_invariants(&db.pool).await;
}

/// It may see tasks as they were, and must not take a claim for ended whose tasks it can't see.
#[tokio::test]
async fn a_caller_that_sees_one_state_all_along_loses_no_claim() {
    for level in ["repeatable read", "serializable"] {
        let (db, worker) = database_with(&[step("a")]).await;
        let run_id = start(&db.pool, "f", json!({})).await;
        let first = claim_one(&db.pool, worker).await;
        age(&db.pool, run_id, "a", 35).await;
        assert_eq!(fail(&db.pool, &first, "again").await, "queued");
        let begin = sqlx::AssertSqlSafe(format!("begin transaction isolation level {level}"));
        let mut old = db.pool.begin_with(begin).await.expect("a session");
        let queued: i64 = sqlx::query_scalar("select count(*) from pgflow.started_tasks")
            .fetch_one(&mut *old)
            .await
            .expect("the view can be read");
        assert_eq!(queued, 0);
        // Started again, unseen.
        show_all(&db.pool, "f").await;
        claim_one(&db.pool, worker).await;
        assert_eq!(requeue(&mut *old).await, 0);
        old.commit().await.expect("it saw the first claim only");
        assert_eq!(claims(&db.pool).await.len(), 1, "{level}");
        assert_invariants(&db.pool).await;
        age(&db.pool, run_id, "a", 3600).await;
        assert_eq!(requeue(&db.pool).await, 1);
        assert_invariants(&db.pool).await;
    }
}

#[tokio::test]
async fn a_task_that_was_tried_again_is_counted_once() {
    let (db, worker) = database_with(&[step("a"), step("b")]).await;
    start(&db.pool, "f", json!({})).await;
    let claimed = claim_all(&db.pool, worker).await;
    let counted = async || -> (i64, i64) {
        sqlx::query_as(
            "select started_tasks, (select count(*) from pgflow.started_tasks) from pgflow.worker_status",
        )
        .fetch_one(&db.pool)
        .await
        .expect("there is one worker")
    };
    assert_eq!(counted().await, (2, 2));
    assert_eq!(fail(&db.pool, &claimed[0], "again").await, "queued");
    assert_eq!(counted().await, (1, 1));
    show_all(&db.pool, "f").await;
    let again = claim_one(&db.pool, worker).await;
    assert_eq!(again.attempt, 2);
    assert_eq!(claims(&db.pool).await, [2, 1]);
    assert_eq!(counted().await, (2, 2));
    let items = [Item::of(&again, json!(1)), Item::of(&claimed[1], json!(1))];
    complete_batch(&db.pool, &items).await;
    assert_eq!(counted().await, (0, 0));
    assert_eq!(count(&db.pool, "pgflow.claims").await, 2);
    assert_invariants(&db.pool).await;
}
