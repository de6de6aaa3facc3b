//! Maps that do without elements that fail: each is a null in the output, and its error stays with
//! its task.

mod definition;
mod races;
mod too_large;

use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, PgPool};
use uuid::Uuid;

use crate::support::TestDb;
use crate::support::events::Events;
use crate::support::flows::{
    Claimed, Step, claim, complete, define_with_step_queues, fail, postpone, start, step,
    step_worker, worker,
};
use crate::support::invariants::assert_invariants;
use crate::support::rows::{archived, messages, run, step_state, tasks};
use crate::support::runs::{
    Item, claim_all, complete_batch, database_with, fail_for_good, outline, recover, task_statuses,
    until_recovery_looks,
};

/// A map over the flow's input that does without elements that fail.
fn tolerant(slug: &str) -> Step {
    step(slug).map().tolerant().max_attempts(1)
}

async fn execute(pool: &PgPool, sql: &str) {
    sqlx::raw_sql(AssertSqlSafe(sql.to_owned()))
        .execute(pool)
        .await
        .unwrap_or_else(|error| panic!("{sql}: {error}"));
}

/// A run of a tolerant map over so many elements, all of them claimed, and of steps after it.
async fn claimed(elements: usize, map: Step, after: &[Step]) -> (TestDb, Uuid, Vec<Claimed>) {
    let steps = [&[map], after].concat();
    let (db, worker) = database_with(&steps).await;
    let run_id = start(&db.pool, "f", json!(vec![0; elements])).await;
    let tasks = claim_all(&db.pool, worker).await;
    assert_eq!(tasks.len(), elements);
    (db, run_id, tasks)
}

/// `remaining_tasks` and `failed_tasks`.
async fn counters(pool: &PgPool, run_id: Uuid) -> (Option<i32>, i32) {
    sqlx::query_as(
        "select remaining_tasks, failed_tasks from pgflow.step_states where run_id = $1 and step_slug = 'm'",
    )
    .bind(run_id)
    .fetch_one(pool)
    .await
    .expect("the step exists")
}

async fn errors(pool: &PgPool, run_id: Uuid) -> Vec<Option<String>> {
    let tasks = tasks(pool, run_id, "m").await.into_iter();
    tasks.map(|task| task.error_message).collect()
}

#[tokio::test]
async fn a_failed_element_is_null_and_the_steps_after_the_map_get_the_list() {
    let after = [step("after").deps(&["m"])];
    let (db, run_id, tasks) = claimed(3, tolerant("m"), &after).await;
    let mut events = Events::at_level(&db.pool, "all").await;
    assert_eq!(counters(&db.pool, run_id).await, (Some(3), 0));
    assert_eq!(fail(&db.pool, &tasks[1], "no such page").await, "failed");
    assert_eq!(counters(&db.pool, run_id).await, (Some(2), 1));
    assert_eq!(archived(&db.pool, "f").await, [tasks[1].message_id]);
    assert_invariants(&db.pool).await;
    complete(&db.pool, &tasks[2], json!("c")).await;
    assert_eq!(
        outline(&db.pool, run_id).await,
        "run started, m started, after created"
    );
    complete(&db.pool, &tasks[0], json!("a")).await;
    assert_eq!(counters(&db.pool, run_id).await, (Some(0), 1));
    assert_eq!(
        outline(&db.pool, run_id).await,
        "run started, m completed, after started"
    );
    assert_eq!(
        events.types(&db.pool).await,
        "step:completed m, step:started after"
    );
    let state = step_state(&db.pool, run_id, "m").await;
    assert_eq!(state.output, Some(json!(["a", null, "c"])));
    assert_eq!(state.error_message, None);
    assert_eq!(
        task_statuses(&db.pool, run_id, "m").await,
        "completed, failed, completed"
    );
    assert_eq!(
        errors(&db.pool, run_id).await,
        [None, Some("no such page".to_owned()), None]
    );
    let worker = worker(&db.pool, "f").await;
    let after = claim(&db.pool, worker, 1).await.remove(0);
    assert_eq!(after.input, json!({"m": ["a", null, "c"]}));
    complete(&db.pool, &after, json!(2)).await;
    assert_eq!(
        run(&db.pool, run_id).await.output,
        Some(json!({"after": 2}))
    );
    assert_eq!(messages(&db.pool, "f").await, []);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn the_failure_of_the_last_element_completes_the_map_whatever_its_mode_is() {
    for mode in ["fail", "skip", "skip-cascade"] {
        let after = [step("after").deps(&["m"])];
        let map = tolerant("m").when_exhausted(mode);
        let (db, run_id, tasks) = claimed(2, map, &after).await;
        complete(&db.pool, &tasks[0], json!(0)).await;
        assert_eq!(
            fail_for_good(&db.pool, &tasks[1], "no").await,
            "failed",
            "{mode}"
        );
        assert_eq!(
            outline(&db.pool, run_id).await,
            "run started, m completed, after started"
        );
        let state = step_state(&db.pool, run_id, "m").await;
        assert_eq!(state.output, Some(json!([0, null])));
        assert_invariants(&db.pool).await;
    }
}

#[tokio::test]
async fn an_element_is_tried_as_often_as_any_task() {
    let map = tolerant("m").max_attempts(2).base_delay(0);
    let (db, run_id, tasks) = claimed(2, map, &[]).await;
    assert_eq!(fail(&db.pool, &tasks[0], "first").await, "queued");
    assert_eq!(counters(&db.pool, run_id).await, (Some(2), 0));
    let worker = worker(&db.pool, "f").await;
    let again = claim(&db.pool, worker, 1).await.remove(0);
    assert_eq!((again.task_index, again.attempt), (0, 2));
    assert_eq!(fail(&db.pool, &again, "second").await, "failed");
    assert_eq!(counters(&db.pool, run_id).await, (Some(1), 1));
    complete(&db.pool, &tasks[1], json!(1)).await;
    assert_eq!(
        run(&db.pool, run_id).await.output,
        Some(json!({"m": [null, 1]}))
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn when_every_element_failed_the_mode_decides_and_the_error_says_how_many() {
    for (mode, expected, told) in [
        (
            "fail",
            "run failed, m failed, other started, after created",
            "step:failed m, run:failed",
        ),
        (
            "skip",
            "run started, m skipped: handler_failed, other started, after started",
            "step:skipped m, step:started after",
        ),
        (
            "skip-cascade",
            "run started, m skipped: handler_failed, other started, after skipped: dependency_skipped",
            "step:skipped m, step:skipped after",
        ),
    ] {
        let steps = [
            tolerant("m").when_exhausted(mode),
            step("other").start_delay(60),
            step("after").deps(&["m"]),
        ];
        let (db, worker) = database_with(&steps).await;
        let run_id = start(&db.pool, "f", json!([1, 2, 3])).await;
        let tasks = claim_all(&db.pool, worker).await;
        let mut events = Events::at_level(&db.pool, "all").await;
        for (task, error) in [(2, "timeout"), (0, "404"), (1, "500")] {
            assert_eq!(fail(&db.pool, &tasks[task], error).await, "failed");
        }
        assert_eq!(outline(&db.pool, run_id).await, expected);
        assert_eq!(events.types(&db.pool).await, told, "{mode}");
        let summary = Some("all 3 elements failed, at last element 1: 500".to_owned());
        let state = step_state(&db.pool, run_id, "m").await;
        assert_eq!(state.error_message, summary);
        let of_run = run(&db.pool, run_id).await.error_message;
        assert_eq!(of_run, summary.filter(|_| mode == "fail"));
        assert_eq!(
            errors(&db.pool, run_id).await,
            ["404", "500", "timeout"].map(|error| Some(error.to_owned())),
            "each task keeps its own"
        );
        assert_invariants(&db.pool).await;
    }
}

#[tokio::test]
async fn a_map_over_one_element_says_that_it_was_the_only_one_and_one_over_none_completes() {
    let (db, run_id, tasks) = claimed(1, tolerant("m"), &[]).await;
    fail(&db.pool, &tasks[0], "no").await;
    let error = run(&db.pool, run_id).await.error_message;
    assert_eq!(error.as_deref(), Some("its only element failed: no"));
    assert_invariants(&db.pool).await;

    let empty = start(&db.pool, "f", json!([])).await;
    assert_eq!(run(&db.pool, empty).await.output, Some(json!({"m": []})));
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_map_over_such_a_map_has_a_task_for_each_null() {
    let (db, run_id, tasks) = claimed(3, tolerant("m"), &[tolerant("n").deps(&["m"])]).await;
    fail(&db.pool, &tasks[0], "no").await;
    fail(&db.pool, &tasks[1], "no").await;
    complete(&db.pool, &tasks[2], json!({"a": 1})).await;
    let worker = worker(&db.pool, "f").await;
    let second = claim_all(&db.pool, worker).await;
    let inputs: Vec<&Value> = second.iter().map(|task| &task.input).collect();
    assert_eq!(inputs, [&json!(null), &json!(null), &json!({"a": 1})]);
    complete(&db.pool, &second[0], json!(0)).await;
    fail(&db.pool, &second[1], "no").await;
    complete(&db.pool, &second[2], json!(1)).await;
    assert_eq!(
        run(&db.pool, run_id).await.output,
        Some(json!({"n": [0, null, 1]}))
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn completions_in_one_batch_end_what_failures_have_left() {
    let after = [step("after").deps(&["m"])];
    let (db, run_id, tasks) = claimed(4, tolerant("m"), &after).await;
    fail(&db.pool, &tasks[3], "no").await;
    fail(&db.pool, &tasks[0], "no").await;
    let items = [
        Item::of(&tasks[1], json!(1)),
        // It has failed: that it is reported again changes nothing.
        Item::of(&tasks[0], json!(0)),
        Item::of(&tasks[2], json!(2)),
    ];
    assert_eq!(
        complete_batch(&db.pool, &items).await,
        ["completed", "stale", "completed"]
    );
    assert_eq!(fail(&db.pool, &tasks[3], "again").await, "failed");
    let state = step_state(&db.pool, run_id, "m").await;
    assert_eq!(state.output, Some(json!([null, 1, 2, null])));
    assert_eq!(counters(&db.pool, run_id).await, (Some(0), 2));
    assert_eq!(
        errors(&db.pool, run_id).await[3].as_deref(),
        Some("no"),
        "a late report changes nothing"
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn an_element_that_brings_its_worker_down_fails_alone() {
    let (db, first) = database_with(&[tolerant("m").max_attempts(2)]).await;
    let run_id = start(&db.pool, "f", json!([1, 2])).await;
    execute(
        &db.pool,
        "update pgmq.q_f set vt = vt + interval '1 hour' where msg_id = 2",
    )
    .await;
    // Two attempts, and one more for which nothing else runs.
    let mut dying = first;
    for attempt in 1..=3 {
        let task = claim(&db.pool, dying, 1).await.remove(0);
        assert_eq!((task.task_index, task.attempt), (0, attempt));
        execute(
            &db.pool,
            &format!("select pgflow.mark_worker_stopped('{dying}')"),
        )
        .await;
        until_recovery_looks(&db.pool).await;
        let ended = i32::from(attempt == 3);
        assert_eq!(recover(&db.pool).await, (1 - ended, ended, false));
        dying = worker(&db.pool, "f").await;
    }
    assert_eq!(outline(&db.pool, run_id).await, "run started, m started");
    let error = errors(&db.pool, run_id).await.remove(0).expect("an error");
    assert!(
        error.contains("the input of step \"m\", task 0, brings the process down"),
        "{error}"
    );
    execute(&db.pool, "update pgmq.q_f set vt = now()").await;
    let other = claim(&db.pool, dying, 1).await.remove(0);
    complete(&db.pool, &other, json!(2)).await;
    assert_eq!(
        run(&db.pool, run_id).await.output,
        Some(json!({"m": [null, 2]}))
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn an_element_that_was_only_postponed_for_too_long_is_null() {
    let map = tolerant("m").give_up_after(60);
    let (db, run_id, tasks) = claimed(2, map, &[]).await;
    complete(&db.pool, &tasks[1], json!(1)).await;
    let postponed = postpone(&db.pool, &tasks[0], "0", "429").await;
    assert_eq!(postponed.expect("postponed"), "queued");
    execute(
        &db.pool,
        "update pgflow.step_tasks set postponed_since = postponed_since - interval '2 minutes' where postponed_count > 0",
    )
    .await;
    let worker = worker(&db.pool, "f").await;
    let again = claim(&db.pool, worker, 1).await.remove(0);
    let given_up = postpone(&db.pool, &again, "0", "429").await;
    assert_eq!(given_up.expect("given up"), "failed");
    assert_eq!(
        run(&db.pool, run_id).await.output,
        Some(json!({"m": [null, 1]}))
    );
    let error = errors(&db.pool, run_id).await.remove(0).expect("an error");
    assert!(error.starts_with("postponed 2 times since"), "{error}");
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn each_step_may_have_a_queue_of_its_own() {
    let db = TestDb::new().await;
    let steps = [tolerant("m"), tolerant("n").deps(&["m"])];
    define_with_step_queues(&db.pool, "f", &steps).await;
    let workers = [
        step_worker(&db.pool, "f", "m").await,
        step_worker(&db.pool, "f", "n").await,
    ];
    let run_id = start(&db.pool, "f", json!([1, 2])).await;
    let first = claim(&db.pool, workers[0], 10).await;
    complete(&db.pool, &first[0], json!(1)).await;
    fail(&db.pool, &first[1], "no").await;
    assert_eq!(archived(&db.pool, "f__m").await.len(), 2);
    let second = claim(&db.pool, workers[1], 10).await;
    fail(&db.pool, &second[0], "no").await;
    complete(&db.pool, &second[1], json!(2)).await;
    assert_eq!(
        run(&db.pool, run_id).await.output,
        Some(json!({"n": [null, 2]}))
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn what_a_step_returns_for_the_map_must_be_a_list_all_the_same() {
    let (db, worker) = database_with(&[step("list"), tolerant("m").deps(&["list"])]).await;
    let run_id = start(&db.pool, "f", json!({})).await;
    let list = claim(&db.pool, worker, 1).await.remove(0);
    assert_eq!(complete(&db.pool, &list, json!(null)).await, "failed");
    let error = run(&db.pool, run_id).await.error_message.expect("an error");
    assert!(
        error.starts_with("[TYPE_VIOLATION] step \"m\" maps over step \"list\""),
        "{error}"
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_run_that_fails_elsewhere_keeps_what_the_map_has_counted() {
    let steps = [tolerant("m"), step("other").max_attempts(1)];
    let (db, worker) = database_with(&steps).await;
    let run_id = start(&db.pool, "f", json!([1, 2, 3])).await;
    let tasks = claim_all(&db.pool, worker).await;
    let of = |step: &str, index| {
        let mut tasks = tasks.iter();
        tasks
            .find(|task| task.step_slug == step && task.task_index == index)
            .expect("claimed")
    };
    fail(&db.pool, of("m", 1), "no").await;
    complete(&db.pool, of("m", 0), json!(0)).await;
    fail(&db.pool, of("other", 0), "no").await;
    assert_eq!(
        task_statuses(&db.pool, run_id, "m").await,
        "completed, failed, cancelled"
    );
    assert_eq!(counters(&db.pool, run_id).await, (Some(1), 1));
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn explain_step_says_how_many_elements_failed() {
    let (db, run_id, tasks) = claimed(3, tolerant("m"), &[]).await;
    let explained = async || -> (String, String) {
        let explained: Value = sqlx::query_scalar("select pgflow.explain_step($1, 'm')")
            .bind(run_id)
            .fetch_one(&db.pool)
            .await
            .expect("the step can be explained");
        let text = |key: &str| explained[key].as_str().expect("a text").to_owned();
        (text("reason"), text("message"))
    };
    assert_eq!(
        explained().await,
        (
            "running".to_owned(),
            "3 of its 3 tasks are running.".to_owned()
        )
    );
    fail(&db.pool, &tasks[0], "no").await;
    assert_eq!(
        explained().await.1,
        "2 of its 3 tasks are running. 1 of its 3 elements failed: null."
    );
    fail(&db.pool, &tasks[1], "no").await;
    complete(&db.pool, &tasks[2], json!(1)).await;
    let (reason, message) = explained().await;
    assert_eq!(reason, "completed");
    assert!(message.starts_with("It completed at "), "{message}");
    assert!(
        message.ends_with(". 2 of its 3 elements failed: null."),
        "{message}"
    );

    let failed = start(&db.pool, "f", json!([1, 2])).await;
    let worker = worker(&db.pool, "f").await;
    for task in claim_all(&db.pool, worker).await {
        fail(&db.pool, &task, "no").await;
    }
    let message: String = sqlx::query_scalar("select pgflow.explain_step($1, 'm') ->> 'message'")
        .bind(failed)
        .fetch_one(&db.pool)
        .await
        .expect("the step can be explained");
    assert!(message.starts_with("It failed at "), "{message}");
    assert!(
        message.ends_with(", and its run with it: all of its 2 elements failed."),
        "{message}"
    );
}
