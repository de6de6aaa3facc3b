//! Steps that run when a run has ended: for which ends, after what, and with which input. `task`
//! has what becomes of them.

mod definition;
mod races;
mod task;

use serde_json::{Value, json};
use sqlx::PgPool;
use uuid::Uuid;

use crate::support::events::Events;
use crate::support::flows::{
    Step, claim_one, complete, define_with_step_queues, drain, start, step, step_worker,
    worker_taking_flow_input,
};
use crate::support::invariants::assert_invariants;
use crate::support::rows::{messages, run, step_state};
use crate::support::runs::{
    Item, claim_all, complete_batch, database_with, fail_for_good, of_step, outline,
    try_complete_batch,
};
use crate::support::{TestDb, flows::define};

/// One step, and both end steps.
fn one_and_both() -> [Step; 3] {
    [
        step("a"),
        step("alarm").on("failure"),
        step("tidy").on("end"),
    ]
}

/// The run's row, as it was when the run ended.
async fn run_row(pool: &PgPool, run_id: Uuid) -> Value {
    sqlx::query_scalar("select to_jsonb(r) from pgflow.runs r where run_id = $1")
        .bind(run_id)
        .fetch_one(pool)
        .await
        .expect("the run exists")
}

#[tokio::test]
async fn a_completed_run_starts_the_one_for_any_end_and_not_the_one_for_failures() {
    let (db, worker) = database_with(&one_and_both()).await;
    let run_id = start(&db.pool, "f", json!({"n": 1})).await;
    assert_eq!(run(&db.pool, run_id).await.remaining_steps, 1);
    assert_eq!(outline(&db.pool, run_id).await, "run started, a started");
    complete(&db.pool, &claim_one(&db.pool, worker).await, json!(5)).await;
    assert_eq!(
        outline(&db.pool, run_id).await,
        "run completed, a completed, tidy started"
    );
    let ended = run_row(&db.pool, run_id).await;
    let tidy = claim_one(&db.pool, worker).await;
    assert_eq!(
        tidy.input,
        json!({"status": "completed", "failed_step": null, "error": null, "outputs": {"a": 5}})
    );
    assert_invariants(&db.pool).await;
    assert_eq!(
        complete(&db.pool, &tidy, json!("tidied")).await,
        "completed"
    );
    assert_eq!(
        outline(&db.pool, run_id).await,
        "run completed, a completed, tidy completed"
    );
    assert_eq!(run_row(&db.pool, run_id).await, ended);
    assert_eq!(ended["output"], json!({"a": 5}));
    assert!(messages(&db.pool, "f").await.is_empty());
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_failed_run_starts_both_with_the_culprit_the_error_and_what_had_completed() {
    let (db, worker) = database_with(&[
        step("alarm").on("failure"),
        step("done"),
        step("each").deps(&["done"]).map(),
        step("culprit").deps(&["done"]),
        step("unmet").required(json!({"never": 1})),
        step("tidy").on("end"),
        step("later").deps(&["each", "culprit"]),
    ])
    .await;
    let run_id = start(&db.pool, "f", json!({})).await;
    complete(&db.pool, &claim_one(&db.pool, worker).await, json!([1, 2])).await;
    let claimed = claim_all(&db.pool, worker).await;
    fail_for_good(&db.pool, of_step(&claimed, "culprit"), "no luck").await;
    assert_eq!(
        outline(&db.pool, run_id).await,
        "run failed, alarm started, done completed, each started, culprit failed, \
         unmet skipped: condition_unmet, tidy started, later created"
    );
    assert_invariants(&db.pool).await;
    let ended = run_row(&db.pool, run_id).await;
    let end_steps = claim_all(&db.pool, worker).await;
    assert_eq!(end_steps.len(), 2, "the tasks of other steps are cancelled");
    for task in &end_steps {
        assert_eq!(
            task.input,
            json!({"status": "failed", "failed_step": "culprit", "error": "no luck", "outputs": {"done": [1, 2]}})
        );
    }
    let batch = end_steps
        .iter()
        .map(|task| Item::of(task, json!(task.step_slug)));
    let outcomes = complete_batch(&db.pool, &batch.collect::<Vec<_>>()).await;
    assert_eq!(outcomes, ["completed", "completed"]);
    assert_eq!(run_row(&db.pool, run_id).await, ended);
    assert_eq!(
        step_state(&db.pool, run_id, "tidy").await.output,
        Some(json!("tidy"))
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn the_second_end_step_of_a_run_is_not_given_what_became_of_the_first() {
    // By their names, end steps come before the culprit.
    let steps = [
        step("work"),
        step("alarm").on("failure"),
        step("tidy").on("end"),
    ];
    let (db, worker) = database_with(&steps).await;
    for first_completes in [true, false] {
        start(&db.pool, "f", json!({})).await;
        fail_for_good(&db.pool, &claim_one(&db.pool, worker).await, "no").await;
        let first = claim_one(&db.pool, worker).await;
        if first_completes {
            complete(&db.pool, &first, json!("done")).await;
        } else {
            fail_for_good(&db.pool, &first, "neither").await;
        }
        let second = claim_one(&db.pool, worker).await;
        assert_ne!(first.step_slug, second.step_slug);
        assert_eq!(
            second.input,
            json!({"status": "failed", "failed_step": "work", "error": "no", "outputs": {}})
        );
        complete(&db.pool, &second, json!(1)).await;
    }
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn every_way_to_end_starts_them() {
    let never = || json!({"never": 1});
    let end_steps = || [step("alarm").on("failure"), step("tidy").on("end")];
    // What ends in the call that starts it: no step at all, all skipped, an empty map, a condition
    // that fails the run.
    for (steps, input, expected) in [
        (vec![], json!({}), "run completed, tidy started"),
        (
            vec![step("a").required(never()), step("b").deps(&["a"]).map()],
            json!({}),
            "run completed, tidy started, a skipped: condition_unmet, b completed",
        ),
        (
            vec![step("a").map(), step("b").deps(&["a"]).map()],
            json!([]),
            "run completed, tidy started, a completed, b completed",
        ),
        (
            vec![step("a").required(never()).when_unmet("fail"), step("b")],
            json!({}),
            "run failed, alarm started, tidy started, a failed, b created",
        ),
    ] {
        let steps: Vec<Step> = end_steps().into_iter().chain(steps).collect();
        let (db, worker) = database_with(&steps).await;
        let run_id = start(&db.pool, "f", input).await;
        assert_eq!(outline(&db.pool, run_id).await, expected);
        assert_invariants(&db.pool).await;
        drain(&db.pool, worker, |_| json!(null)).await;
        assert_invariants(&db.pool).await;
    }
    // What ends in a report: a step that is skipped when its attempts are used up, an output that
    // is no list, a large run.
    let (db, worker) = database_with(&[
        step("a").when_exhausted("skip"),
        step("alarm").on("failure"),
        step("tidy").on("end"),
    ])
    .await;
    let run_id = start(&db.pool, "f", json!({})).await;
    fail_for_good(&db.pool, &claim_one(&db.pool, worker).await, "no").await;
    assert_eq!(
        outline(&db.pool, run_id).await,
        "run completed, a skipped: handler_failed, tidy started"
    );
    assert_invariants(&db.pool).await;

    let (db, worker) = database_with(&[
        step("list"),
        step("each").deps(&["list"]).map(),
        step("alarm").on("failure"),
    ])
    .await;
    let run_id = start(&db.pool, "f", json!({})).await;
    complete(&db.pool, &claim_one(&db.pool, worker).await, json!("none")).await;
    assert_eq!(
        outline(&db.pool, run_id).await,
        "run failed, list failed, each created, alarm started"
    );
    let alarm = claim_one(&db.pool, worker).await;
    assert_eq!(alarm.input["failed_step"], "list");
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_map_flow_ends_once_whatever_the_order_of_its_elements() {
    let (db, worker) = database_with(&[step("each").map(), step("tidy").on("end")]).await;
    let run_id = start(&db.pool, "f", json!([1, 2, 3])).await;
    let elements = claim_all(&db.pool, worker).await;
    let batch: Vec<Item> = elements
        .iter()
        .rev()
        .map(|task| Item::of(task, json!(0)))
        .collect();
    let rows = try_complete_batch(&db.pool, &batch)
        .await
        .expect("completed");
    assert!(
        rows.iter().all(|row| row.made_ready),
        "there is more to claim"
    );
    let tidy = claim_one(&db.pool, worker).await;
    assert_eq!(tidy.input["outputs"], json!({"each": [0, 0, 0]}));
    let rows = try_complete_batch(&db.pool, &[Item::of(&tidy, json!(1))])
        .await
        .expect("completed");
    assert!(!rows[0].made_ready);
    assert_eq!(
        outline(&db.pool, run_id).await,
        "run completed, each completed, tidy completed"
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn one_batch_may_end_a_run_and_complete_the_end_step_of_another() {
    let (db, worker) = database_with(&one_and_both()).await;
    let first = start(&db.pool, "f", json!({})).await;
    complete(&db.pool, &claim_one(&db.pool, worker).await, json!(1)).await;
    let tidy = claim_one(&db.pool, worker).await;
    let second = start(&db.pool, "f", json!({})).await;
    let a = claim_one(&db.pool, worker).await;
    let batch = [Item::of(&tidy, json!(2)), Item::of(&a, json!(3))];
    assert_eq!(
        complete_batch(&db.pool, &batch).await,
        ["completed", "completed"]
    );
    assert_eq!(
        outline(&db.pool, first).await,
        "run completed, a completed, tidy completed"
    );
    assert_eq!(
        outline(&db.pool, second).await,
        "run completed, a completed, tidy started"
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn the_end_of_the_run_is_told_before_its_end_steps() {
    let (db, worker) = database_with(&one_and_both()).await;
    let mut events = Events::at_level(&db.pool, "all").await;
    start(&db.pool, "f", json!({})).await;
    fail_for_good(&db.pool, &claim_one(&db.pool, worker).await, "no").await;
    assert_eq!(
        events.types(&db.pool).await,
        "run:started, step:started a, step:failed a, run:failed, step:started alarm, step:started tidy"
    );
    let tasks = claim_all(&db.pool, worker).await;
    complete(&db.pool, of_step(&tasks, "alarm"), json!(1)).await;
    fail_for_good(&db.pool, of_step(&tasks, "tidy"), "no").await;
    assert_eq!(
        events.types(&db.pool).await,
        "step:completed alarm, step:failed tidy"
    );
    start(&db.pool, "f", json!({})).await;
    complete(&db.pool, &claim_one(&db.pool, worker).await, json!(1)).await;
    assert_eq!(
        events.types(&db.pool).await,
        "run:started, step:started a, step:completed a, run:completed, step:started tidy"
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn with_step_queues_each_has_its_own_queue() {
    let db = TestDb::new().await;
    define_with_step_queues(&db.pool, "orders", &one_and_both()).await;
    let run_id = start(&db.pool, "orders", json!({})).await;
    let a = step_worker(&db.pool, "orders", "a").await;
    fail_for_good(&db.pool, &claim_one(&db.pool, a).await, "no").await;
    for slug in ["alarm", "tidy"] {
        let worker = step_worker(&db.pool, "orders", slug).await;
        let task = claim_one(&db.pool, worker).await;
        assert_eq!(task.step_slug, slug);
        assert_eq!(task.input["error"], "no");
        assert_ne!(task.queue_name, "orders");
        complete(&db.pool, &task, json!(1)).await;
    }
    assert_eq!(
        outline(&db.pool, run_id).await,
        "run failed, a failed, alarm completed, tidy completed"
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn the_flow_s_input_comes_along_for_those_that_take_it() {
    let db = TestDb::new().await;
    define(&db.pool, "f", &one_and_both()).await;
    let worker = worker_taking_flow_input(&db.pool, "f", &["tidy"]).await;
    for once in [false, true] {
        sqlx::query("update pgflow.workers set flow_input_once = $1")
            .bind(once)
            .execute(&db.pool)
            .await
            .expect("workers can be changed");
        start(&db.pool, "f", json!({"n": 1})).await;
        fail_for_good(&db.pool, &claim_one(&db.pool, worker).await, "no").await;
        let tasks = claim_all(&db.pool, worker).await;
        let (alarm, tidy) = (of_step(&tasks, "alarm"), of_step(&tasks, "tidy"));
        assert_eq!(alarm.flow_input, None);
        assert_eq!(tidy.flow_input, Some(json!({"n": 1})));
        assert_eq!(alarm.input, tidy.input);
        assert_eq!(alarm.input["failed_step"], "a");
    }
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_careful_claim_and_a_worker_of_another_language_get_the_same_input() {
    let (db, worker) = database_with(&one_and_both()).await;
    start(&db.pool, "f", json!({})).await;
    complete(&db.pool, &claim_one(&db.pool, worker).await, json!(7)).await;
    let expected =
        json!({"status": "completed", "failed_step": null, "error": null, "outputs": {"a": 7}});
    let mut careful = db.pool.begin().await.expect("a transaction");
    sqlx::query("select set_config('pgflow.careful_claims', 'on', true)")
        .execute(&mut *careful)
        .await
        .expect("it can be set");
    assert_eq!(claim_one(&mut *careful, worker).await.input, expected);
    careful.rollback().await.expect("undone");

    let message = messages(&db.pool, "f").await.remove(0);
    let input: Value =
        sqlx::query_scalar("select input from pgflow.start_tasks('f', array[$1], $2, 'f')")
            .bind(message.id)
            .bind(worker)
            .fetch_one(&db.pool)
            .await
            .expect("the task can be started");
    assert_eq!(input, expected);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn without_end_steps_nothing_follows_the_end() {
    let (db, worker) = database_with(&[step("a")]).await;
    let run_id = start(&db.pool, "f", json!({})).await;
    complete(&db.pool, &claim_one(&db.pool, worker).await, json!(1)).await;
    assert_eq!(
        run_row(&db.pool, run_id).await["has_end_steps"],
        json!(false)
    );
    assert!(claim_all(&db.pool, worker).await.is_empty());
    assert_invariants(&db.pool).await;
}
