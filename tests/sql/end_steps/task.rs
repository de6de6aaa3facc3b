//! The task of an end step: retried, recovered, given back and given up like any other, and its run
//! stays as it ended.

use serde_json::{Value, json};
use sqlx::PgPool;
use uuid::Uuid;

use super::run_row;
use crate::support::TestDb;
use crate::support::flows::{Claimed, claim, claim_one, complete, fail, postpone, start, step};
use crate::support::invariants::assert_invariants;
use crate::support::rows::{archived, count, messages, show_all, step_state, task};
use crate::support::runs::{age, claim_all, database_with, fail_for_good, outline, requeue};

/// A completed run whose end step, with two attempts, is claimed; and the run's row.
struct Ended {
    db: TestDb,
    worker: Uuid,
    run_id: Uuid,
    tidy: Claimed,
    row: Value,
}

async fn ended() -> Ended {
    let (db, worker) = database_with(&[
        step("a"),
        step("tidy").on("end").max_attempts(2).give_up_after(60),
    ])
    .await;
    let run_id = start(&db.pool, "f", json!({})).await;
    complete(&db.pool, &claim_one(&db.pool, worker).await, json!(1)).await;
    let row = run_row(&db.pool, run_id).await;
    let tidy = claim_one(&db.pool, worker).await;
    assert_eq!(tidy.step_slug, "tidy");
    Ended {
        db,
        worker,
        run_id,
        tidy,
        row,
    }
}

async fn explain(pool: &PgPool, run_id: Uuid, step: &str) -> (String, String) {
    sqlx::query_as("select e ->> 'reason', e ->> 'message' from pgflow.explain_step($1, $2) e")
        .bind(run_id)
        .bind(step)
        .fetch_one(pool)
        .await
        .expect("the step can be explained")
}

#[tokio::test]
async fn its_failure_is_retried_and_its_last_one_fails_nothing_but_itself() {
    let Ended {
        db,
        worker,
        run_id,
        tidy,
        row,
    } = ended().await;
    assert_eq!(fail(&db.pool, &tidy, "not yet").await, "queued");
    let again = claim_one(&db.pool, worker).await;
    assert_eq!((again.attempt, &again.input), (2, &tidy.input));
    assert_invariants(&db.pool).await;
    assert_eq!(fail(&db.pool, &again, "never").await, "failed");
    assert_eq!(
        outline(&db.pool, run_id).await,
        "run completed, a completed, tidy failed"
    );
    let state = step_state(&db.pool, run_id, "tidy").await;
    assert_eq!(state.error_message.as_deref(), Some("never"));
    assert_eq!(
        task(&db.pool, run_id, "tidy")
            .await
            .error_message
            .as_deref(),
        Some("never")
    );
    assert_eq!(run_row(&db.pool, run_id).await, row);
    assert!(messages(&db.pool, "f").await.is_empty());
    assert_eq!(archived(&db.pool, "f").await.len(), 2);
    let (reason, message) = explain(&db.pool, run_id, "tidy").await;
    assert_eq!(reason, "failed");
    assert!(
        message.ends_with("its task failed at the last of its 2 attempts. Its run had completed before, and stays as it is."),
        "{message}"
    );
    // Late reports change nothing.
    assert_eq!(complete(&db.pool, &again, json!(1)).await, "failed");
    assert_eq!(fail(&db.pool, &tidy, "late").await, "failed");
    assert_eq!(run_row(&db.pool, run_id).await, row);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_failure_that_rules_retries_out_and_a_postponement_are_those_of_any_step() {
    let Ended {
        db,
        worker,
        run_id,
        tidy,
        row,
    } = ended().await;
    let status = postpone(&db.pool, &tidy, "0", "busy")
        .await
        .expect("postponed");
    assert_eq!(status, "queued");
    show_all(&db.pool, "f").await;
    let again = claim_one(&db.pool, worker).await;
    sqlx::query("update pgflow.step_tasks set postponed_since = postponed_since - interval '2 minutes' where step_slug = 'tidy'")
        .execute(&db.pool)
        .await
        .expect("it can be aged");
    let status = postpone(&db.pool, &again, "0", "busy")
        .await
        .expect("given up");
    assert_eq!(status, "failed");
    assert_eq!(run_row(&db.pool, run_id).await, row);
    assert_invariants(&db.pool).await;

    let Ended {
        db,
        run_id,
        tidy,
        row,
        ..
    } = ended().await;
    assert_eq!(fail_for_good(&db.pool, &tidy, "no").await, "failed");
    assert_eq!(run_row(&db.pool, run_id).await, row);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn it_is_recovered_and_given_up_like_any_other() {
    let Ended {
        db,
        worker,
        run_id,
        row,
        ..
    } = ended().await;
    age(&db.pool, run_id, "tidy", 3600).await;
    assert_eq!(requeue(&db.pool).await, 1);
    let again = claim_one(&db.pool, worker).await;
    assert_eq!(again.attempt, 2);
    assert_invariants(&db.pool).await;
    age(&db.pool, run_id, "tidy", 3600).await;
    assert_eq!(requeue(&db.pool).await, 0);
    assert_eq!(
        outline(&db.pool, run_id).await,
        "run completed, a completed, tidy failed"
    );
    assert_eq!(run_row(&db.pool, run_id).await, row);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn it_is_given_back_by_a_worker_that_stops_and_no_attempt_is_lost_sight_of() {
    let Ended {
        db,
        worker,
        run_id,
        tidy,
        row,
    } = ended().await;
    let lost: Vec<i32> =
        sqlx::query_scalar("select pgflow.lost_attempts(array[$1], '{tidy}', '{0}', '{1}')")
            .bind(run_id)
            .fetch_all(&db.pool)
            .await
            .expect("an answer");
    assert!(lost.is_empty(), "the end of its run takes nothing from it");
    let released: i32 = sqlx::query_scalar(
        "select pgflow.release_tasks($1, array[$2], '{tidy}', '{0}', array[$3])",
    )
    .bind(worker)
    .bind(run_id)
    .bind(tidy.attempt)
    .fetch_one(&db.pool)
    .await
    .expect("it can be given back");
    assert_eq!(released, 1);
    let again = claim_one(&db.pool, worker).await;
    assert_eq!((again.attempt, again.max_attempts), (2, 3));
    assert_eq!(run_row(&db.pool, run_id).await, row);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_message_that_is_read_again_is_hidden_and_one_whose_task_has_ended_is_archived() {
    let Ended {
        db, worker, tidy, ..
    } = ended().await;
    show_all(&db.pool, "f").await;
    assert!(claim(&db.pool, worker, 5).await.is_empty());
    assert!(messages(&db.pool, "f").await[0].hidden_for > 30);
    assert_invariants(&db.pool).await;
    complete(&db.pool, &tidy, json!(1)).await;
    sqlx::query("insert into pgmq.q_f (msg_id, vt, message) overriding system value select msg_id, now(), message from pgmq.a_f")
        .execute(&db.pool)
        .await
        .expect("messages can be copied back");
    assert!(claim(&db.pool, worker, 5).await.is_empty());
    assert!(messages(&db.pool, "f").await.is_empty());
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn its_run_is_kept_until_it_has_ended() {
    let Ended { db, tidy, .. } = ended().await;
    let prune = async || -> i32 {
        sqlx::query_scalar("select pgflow.prune_data_older_than(interval '0')")
            .fetch_one(&db.pool)
            .await
            .expect("old data can be removed")
    };
    assert_eq!(prune().await, 0, "it runs");
    assert_eq!(fail(&db.pool, &tidy, "not yet").await, "queued");
    assert_eq!(prune().await, 0, "it waits");
    let again = claim_one(&db.pool, tidy_worker(&db.pool).await).await;
    complete(&db.pool, &again, json!(1)).await;
    assert_eq!(prune().await, 1);
    for table in [
        "pgflow.runs",
        "pgflow.step_states",
        "pgflow.step_tasks",
        "pgmq.q_f",
        "pgmq.a_f",
    ] {
        assert_eq!(count(&db.pool, table).await, 0, "{table}");
    }
    assert_invariants(&db.pool).await;
}

async fn tidy_worker(pool: &PgPool) -> Uuid {
    crate::support::flows::worker(pool, "f").await
}

#[tokio::test]
async fn a_flow_is_deleted_with_its_end_steps_at_work() {
    for (call, times) in [
        ("select pgflow.delete_flow_and_data('f')", 1),
        ("select pgflow.delete_flow_batch('f')", 3),
    ] {
        let Ended { db, .. } = ended().await;
        for _ in 0..times {
            sqlx::query(call)
                .execute(&db.pool)
                .await
                .expect("the flow can be deleted");
        }
        for table in [
            "pgflow.flows",
            "pgflow.steps",
            "pgflow.runs",
            "pgflow.step_states",
            "pgflow.step_tasks",
        ] {
            assert_eq!(count(&db.pool, table).await, 0, "{table} after {call}");
        }
        assert_invariants(&db.pool).await;
    }
}

#[tokio::test]
async fn it_is_explained_before_at_and_without_its_end() {
    let (db, worker) = database_with(&[
        step("a"),
        step("alarm").on("failure"),
        step("tidy").on("end"),
    ])
    .await;
    let run_id = start(&db.pool, "f", json!({})).await;
    let expect = async |step: &str, reason: &str, message: &str| {
        assert_eq!(
            explain(&db.pool, run_id, step).await,
            (reason.to_owned(), message.to_owned())
        );
    };
    expect(
        "alarm",
        "waiting_for_run_end",
        "It runs if the run fails; the run has not ended.",
    )
    .await;
    expect(
        "tidy",
        "waiting_for_run_end",
        "It runs when the run has ended; the run has not ended.",
    )
    .await;
    complete(&db.pool, &claim_one(&db.pool, worker).await, json!(1)).await;
    expect(
        "alarm",
        "run_ended",
        "It runs if the run fails; the run completed.",
    )
    .await;
    let (reason, _) = explain(&db.pool, run_id, "tidy").await;
    assert_eq!(reason, "waiting_for_worker");
    claim_all(&db.pool, worker).await;
    expect("tidy", "running", "Its task is running.").await;
    let runs_on: Option<String> =
        sqlx::query_scalar("select pgflow.explain_step($1, 'tidy') ->> 'runs_on'")
            .bind(run_id)
            .fetch_one(&db.pool)
            .await
            .expect("an answer");
    assert_eq!(runs_on.as_deref(), Some("end"));
    assert_invariants(&db.pool).await;
}
