//! `fail_task`: exhaustion and late reports. What `when_exhausted` decides is in `when_exhausted`,
//! what becomes of messages in `messages`; retries are in the module `retries` beside this one.

mod messages;
mod when_exhausted;

use serde_json::json;
use uuid::Uuid;

use crate::support::TestDb;
use crate::support::flows::{Claimed, claim, claim_one, complete, fail, start, step, worker};
use crate::support::invariants::assert_invariants;
use crate::support::rows::{messages, raised, run, step_state, task, tasks};
use crate::support::runs::{
    Failure, age, claim_all, database_with, everything, fail_for_good, of_step, outline, requeue,
    stamps, task_statuses, try_fail,
};

#[tokio::test]
async fn another_attempt_than_the_current_one_changes_nothing() {
    let (db, worker) = database_with(&[step("a")]).await;
    start(&db.pool, "f", json!({})).await;
    let first = claim_one(&db.pool, worker).await;
    fail(&db.pool, &first, "x").await;

    let before = everything(&db.pool, "f").await;
    let late = Failure {
        retry_delay: Some("600"),
        ..Failure::default()
    };
    assert_eq!(
        try_fail(&db.pool, &first, late).await.expect("late"),
        ["queued"]
    );
    assert_eq!(
        everything(&db.pool, "f").await,
        before,
        "the message of the retry is not put off"
    );

    let second = claim_one(&db.pool, worker).await;
    let before = everything(&db.pool, "f").await;
    for attempt in [0, 1, 3] {
        for retryable in [true, false] {
            let failure = Failure {
                attempt: Some(attempt),
                retryable,
                ..Failure::default()
            };
            let rows = try_fail(&db.pool, &second, failure).await;
            assert_eq!(rows.expect("stale"), ["started"]);
        }
    }
    assert_eq!(everything(&db.pool, "f").await, before);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_late_report_changes_nothing() {
    let (db, worker) = database_with(&[
        step("culprit"),
        step("done"),
        step("skipped").map().when_exhausted("skip"),
        step("other"),
    ])
    .await;
    let run_id = start(&db.pool, "f", json!([1, 2])).await;
    let claimed = claim_all(&db.pool, worker).await;
    complete(&db.pool, of_step(&claimed, "done"), json!(1)).await;
    let elements: Vec<&Claimed> = claimed
        .iter()
        .filter(|t| t.step_slug == "skipped")
        .collect();
    fail_for_good(&db.pool, elements[0], "x").await;

    let before = everything(&db.pool, "f").await;
    for (task, status) in [
        (of_step(&claimed, "done"), "completed"),
        (elements[0], "failed"),
        (elements[1], "skipped"),
    ] {
        assert_eq!(fail_for_good(&db.pool, task, "late").await, status);
        assert_eq!(fail(&db.pool, task, "late").await, status);
    }
    assert_eq!(
        everything(&db.pool, "f").await,
        before,
        "the step has ended"
    );

    fail_for_good(&db.pool, of_step(&claimed, "culprit"), "it was me").await;
    let before = everything(&db.pool, "f").await;
    for (step, status) in [("culprit", "failed"), ("other", "cancelled")] {
        let task = of_step(&claimed, step);
        assert_eq!(fail_for_good(&db.pool, task, "late").await, status);
        assert_eq!(fail(&db.pool, task, "late").await, status);
    }
    assert_eq!(
        everything(&db.pool, "f").await,
        before,
        "the run has failed"
    );
    assert_eq!(
        run(&db.pool, run_id).await.error_message.as_deref(),
        Some("it was me")
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn the_error_stands_at_task_step_and_run_and_nowhere_else() {
    let (db, worker) =
        database_with(&[step("a").max_attempts(1), step("b"), step("c").deps(&["a"])]).await;
    let run_id = start(&db.pool, "f", json!({})).await;
    let claimed = claim_all(&db.pool, worker).await;
    fail(&db.pool, of_step(&claimed, "a"), "no such crate").await;
    let error = Some("no such crate".to_owned());
    assert_eq!(task(&db.pool, run_id, "a").await.error_message, error);
    assert_eq!(step_state(&db.pool, run_id, "a").await.error_message, error);
    assert_eq!(run(&db.pool, run_id).await.error_message, error);
    assert_eq!(task(&db.pool, run_id, "b").await.error_message, None);
    assert_eq!(step_state(&db.pool, run_id, "b").await.error_message, None);
    assert_eq!(step_state(&db.pool, run_id, "c").await.error_message, None);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_failure_without_a_message_says_so() {
    let (db, worker) = database_with(&[step("a")]).await;
    let run_id = start(&db.pool, "f", json!({})).await;
    let claimed = claim_one(&db.pool, worker).await;
    let failure = Failure {
        message: None,
        retryable: false,
        ..Failure::default()
    };
    let rows = try_fail(&db.pool, &claimed, failure).await;
    assert_eq!(rows.expect("accepted"), ["failed"]);
    assert_eq!(
        run(&db.pool, run_id).await.error_message.as_deref(),
        Some("failed without a message")
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn the_rest_of_a_failed_run_is_cancelled_and_what_was_done_stays() {
    let (db, worker) = database_with(&[
        step("done"),
        step("m").map().max_attempts(1),
        step("parallel"),
        step("waiting").start_delay(3600),
        step("after").deps(&["done", "m"]),
    ])
    .await;
    let run_id = start(&db.pool, "f", json!([1, 2, 3])).await;
    let other = start(&db.pool, "f", json!([])).await;
    // Message ids follow the slugs: `done`, then two of `m`.
    let claimed = claim(&db.pool, worker, 3).await;
    complete(&db.pool, &claimed[0], json!("kept")).await;
    complete(&db.pool, &claimed[1], json!("kept")).await;
    fail(&db.pool, &claimed[2], "x").await;

    assert_eq!(
        outline(&db.pool, run_id).await,
        "run failed, done completed, m failed, parallel started, waiting started, after created"
    );
    assert_eq!(
        task_statuses(&db.pool, run_id, "m").await,
        "completed, failed, cancelled"
    );
    for step in ["parallel", "waiting"] {
        assert_eq!(task_statuses(&db.pool, run_id, step).await, "cancelled");
    }
    assert_eq!(
        task(&db.pool, run_id, "done").await.output,
        Some(json!("kept"))
    );
    assert_eq!(
        tasks(&db.pool, run_id, "m").await[0].output,
        Some(json!("kept"))
    );
    assert_eq!(step_state(&db.pool, run_id, "m").await.output, None);
    let live = messages(&db.pool, "f").await;
    assert!(live.iter().all(|m| m.body["run_id"] == json!(other)));
    assert_eq!(run(&db.pool, other).await.status, "started");
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn an_unknown_task_is_an_error() {
    let (db, worker) = database_with(&[step("a")]).await;
    start(&db.pool, "f", json!({})).await;
    let known = claim_one(&db.pool, worker).await;
    let unknown = [
        Claimed {
            run_id: Uuid::from_u128(7),
            ..known.clone()
        },
        Claimed {
            step_slug: "b".to_owned(),
            ..known.clone()
        },
        Claimed {
            task_index: 1,
            ..known.clone()
        },
    ];
    for task in unknown {
        assert_eq!(
            raised(try_fail(&db.pool, &task, Failure::default()).await),
            format!(
                "PF003: there is no task \"{}\" [{}] in run {}",
                task.step_slug, task.task_index, task.run_id
            )
        );
    }
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn the_only_attempt_fails_task_step_and_run_and_empties_the_queue() {
    let (db, worker) = database_with(&[step("a").max_attempts(1)]).await;
    let run_id = start(&db.pool, "f", json!({})).await;
    assert_eq!(
        fail(&db.pool, &claim_one(&db.pool, worker).await, "no").await,
        "failed"
    );
    assert_eq!(task_statuses(&db.pool, run_id, "a").await, "failed");
    assert_eq!(outline(&db.pool, run_id).await, "run failed, a failed");
    assert_eq!(messages(&db.pool, "f").await, []);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn the_second_failure_of_two_attempts_is_final_whoever_set_the_limit() {
    for (of_flow, step) in [
        (2, step("a")),
        (5, step("a").max_attempts(2)),
        (1, step("a").max_attempts(2)),
    ] {
        let db = TestDb::new().await;
        sqlx::query("select pgflow.create_flow('f', max_attempts => $1, base_delay => 0)")
            .bind(of_flow)
            .execute(&db.pool)
            .await
            .expect("created");
        step.add(&db.pool, "f").await.expect("added");
        let worker = worker(&db.pool, "f").await;
        let run_id = start(&db.pool, "f", json!({})).await;
        for (status, run_status) in [("queued", "started"), ("failed", "failed")] {
            let claimed = claim_one(&db.pool, worker).await;
            assert_eq!(fail(&db.pool, &claimed, "no").await, status);
            assert_eq!(run(&db.pool, run_id).await.status, run_status);
        }
        assert_invariants(&db.pool).await;
    }
}

#[tokio::test]
async fn a_failure_stamps_its_task_its_step_and_the_run_and_a_retry_takes_the_start_back() {
    let (db, worker) = database_with(&[step("a").max_attempts(2), step("b").deps(&["a"])]).await;
    let run_id = start(&db.pool, "f", json!({})).await;
    fail(&db.pool, &claim_one(&db.pool, worker).await, "once").await;
    assert_eq!(
        stamps(&db.pool, run_id).await,
        [
            "run: started",
            "a: created, started",
            "b: created",
            "a[0]: queued"
        ]
    );
    fail(&db.pool, &claim_one(&db.pool, worker).await, "twice").await;
    assert_eq!(
        stamps(&db.pool, run_id).await,
        [
            "run: failed, started",
            "a: created, failed, started",
            "b: created",
            "a[0]: failed, queued, started"
        ]
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_task_that_stalled_for_good_has_ended_its_run_and_late_reports_change_nothing() {
    let (db, worker) = database_with(&[step("a").max_attempts(4)]).await;
    let run_id = start(&db.pool, "f", json!({})).await;
    let mut held = Vec::new();
    for requeued in [1, 1, 1, 0] {
        held.push(claim_one(&db.pool, worker).await);
        age(&db.pool, run_id, "a", 3600).await;
        assert_eq!(requeue(&db.pool).await, requeued);
    }
    assert_eq!(outline(&db.pool, run_id).await, "run failed, a failed");
    assert_eq!(messages(&db.pool, "f").await, []);

    let before = everything(&db.pool, "f").await;
    for task in &held {
        assert_eq!(fail(&db.pool, task, "late").await, "failed");
        let unnamed = try_fail(&db.pool, task, Failure::default()).await;
        assert_eq!(unnamed.expect("it is late"), ["failed"]);
        assert_eq!(complete(&db.pool, task, json!("late")).await, "failed");
    }
    assert_eq!(everything(&db.pool, "f").await, before);
    assert_invariants(&db.pool).await;
}
