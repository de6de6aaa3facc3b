//! Type violations: a single step that feeds a map must return an array. One that does not fails
//! its run, whatever its modes say.

use serde_json::{Value, json};

use crate::support::flows::{claim, claim_one, start, step};
use crate::support::invariants::assert_invariants;
use crate::support::rows::{archived, messages, run, step_state, task};
use crate::support::runs::{
    Item, claim_all, complete_batch, database_with, of_step, outline, task_statuses,
};

#[tokio::test]
async fn each_type_but_an_array_fails_the_run() {
    let (db, worker) = database_with(&[
        step("source").when_exhausted("skip-cascade"),
        step("single").deps(&["source"]),
        step("m").map().deps(&["source"]),
    ])
    .await;
    let outputs = [
        (Some(json!({"a": [1]})), "object"),
        (Some(json!("[]")), "string"),
        (Some(json!(7)), "number"),
        (Some(json!(false)), "boolean"),
        (Some(Value::Null), "null"),
        (None, "null"),
    ];
    for (output, kind) in outputs {
        let run_id = start(&db.pool, "f", json!({})).await;
        let source = claim_one(&db.pool, worker).await;
        let item = Item {
            output: output.clone(),
            ..Item::of(&source, Value::Null)
        };
        assert_eq!(complete_batch(&db.pool, &[item]).await, ["failed"]);

        let message = format!(
            "[TYPE_VIOLATION] step \"m\" maps over step \"source\", which must return an array; it returned {kind}"
        );
        assert_eq!(
            outline(&db.pool, run_id).await,
            "run failed, source failed, single created, m created"
        );
        let task = task(&db.pool, run_id, "source").await;
        assert_eq!(task.status, "failed");
        assert_eq!(task.output, Some(output.unwrap_or(Value::Null)));
        let state = step_state(&db.pool, run_id, "source").await;
        assert_eq!(state.output, None);
        assert_eq!(step_state(&db.pool, run_id, "m").await.initial_tasks, None);
        let run = run(&db.pool, run_id).await;
        assert_eq!((run.remaining_steps, run.output), (3, None));
        for error in [task.error_message, state.error_message, run.error_message] {
            assert_eq!(error.as_deref(), Some(message.as_str()));
        }
    }
    assert_eq!(messages(&db.pool, "f").await, []);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn only_a_step_that_feeds_a_map_must_return_an_array() {
    let (db, worker) = database_with(&[
        step("list"),
        step("m").map().deps(&["list"]),
        step("after").deps(&["m"]),
        step("single").deps(&["list"]),
    ])
    .await;
    let run_id = start(&db.pool, "f", json!({})).await;
    let list = claim_one(&db.pool, worker).await;
    complete_batch(&db.pool, &[Item::of(&list, json!([1]))]).await;
    while let Some(task) = claim(&db.pool, worker, 1).await.pop() {
        let output = json!({"not": "an array"});
        assert_eq!(
            complete_batch(&db.pool, &[Item::of(&task, output)]).await,
            ["completed"]
        );
    }
    assert_eq!(run(&db.pool, run_id).await.status, "completed");
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn items_of_the_same_run_are_stale_and_those_of_other_runs_complete() {
    let (db, worker) = database_with(&[
        step("a"),
        step("source"),
        step("z"),
        step("m").map().deps(&["source"]),
    ])
    .await;
    let bad = start(&db.pool, "f", json!({})).await;
    let good = start(&db.pool, "f", json!({})).await;
    let claimed = claim_all(&db.pool, worker).await;
    let (of_bad, of_good): (Vec<_>, Vec<_>) = claimed.into_iter().partition(|t| t.run_id == bad);
    let batch = [
        Item::of(of_step(&of_bad, "a"), json!(1)),
        Item::of(of_step(&of_good, "source"), json!([1])),
        Item::of(of_step(&of_bad, "source"), json!({})),
        Item::of(of_step(&of_bad, "z"), json!(1)),
        Item::of(of_step(&of_good, "z"), json!(1)),
    ];
    assert_eq!(
        complete_batch(&db.pool, &batch).await,
        ["stale", "completed", "failed", "stale", "completed"]
    );
    assert_eq!(
        outline(&db.pool, bad).await,
        "run failed, a started, source failed, z started, m created"
    );
    assert_eq!(task_statuses(&db.pool, bad, "a").await, "cancelled");
    assert_eq!(task_statuses(&db.pool, bad, "z").await, "cancelled");
    assert_eq!(
        outline(&db.pool, good).await,
        "run started, a started, source completed, z completed, m started"
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn two_violations_of_one_run_fail_it_once() {
    let (db, worker) = database_with(&[
        step("a"),
        step("b"),
        step("over_a").map().deps(&["a"]),
        step("over_b").map().deps(&["b"]),
    ])
    .await;
    let run_id = start(&db.pool, "f", json!({})).await;
    let claimed = claim_all(&db.pool, worker).await;
    let batch = [
        Item::of(of_step(&claimed, "b"), json!("first")),
        Item::of(of_step(&claimed, "a"), json!("second")),
        Item::of(of_step(&claimed, "b"), json!([])),
    ];
    assert_eq!(
        complete_batch(&db.pool, &batch).await,
        ["failed", "stale", "stale"]
    );
    assert_eq!(
        outline(&db.pool, run_id).await,
        "run failed, a started, b failed, over_a created, over_b created"
    );
    assert_eq!(task_statuses(&db.pool, run_id, "a").await, "cancelled");
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_violation_cancels_what_waits_and_what_runs_and_archives_all_messages() {
    let (db, worker) = database_with(&[
        step("source"),
        step("running"),
        step("waiting").start_delay(3600),
        step("m").map().deps(&["source"]),
    ])
    .await;
    let run_id = start(&db.pool, "f", json!({})).await;
    let claimed = claim_all(&db.pool, worker).await;
    let other = start(&db.pool, "f", json!({})).await;
    let sent: Vec<i64> = messages(&db.pool, "f").await.iter().map(|m| m.id).collect();
    let (of_run, of_other) = sent.split_at(3);
    assert_eq!(task_statuses(&db.pool, run_id, "running").await, "started");
    assert_eq!(task_statuses(&db.pool, run_id, "waiting").await, "queued");

    let violation = Item::of(of_step(&claimed, "source"), json!(1));
    assert_eq!(complete_batch(&db.pool, &[violation]).await, ["failed"]);
    for step in ["running", "waiting"] {
        assert_eq!(task_statuses(&db.pool, run_id, step).await, "cancelled");
    }
    assert_eq!(archived(&db.pool, "f").await, of_run);
    let live: Vec<i64> = messages(&db.pool, "f").await.iter().map(|m| m.id).collect();
    assert_eq!(live, of_other, "those of the other run");
    assert_eq!(run(&db.pool, other).await.status, "started");
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_stale_item_can_not_violate_anything() {
    let (db, worker) = database_with(&[step("source"), step("m").map().deps(&["source"])]).await;
    let run_id = start(&db.pool, "f", json!({})).await;
    let source = claim_one(&db.pool, worker).await;
    let stale = Item::of(&source, json!({})).attempt(2);
    assert_eq!(complete_batch(&db.pool, &[stale]).await, ["stale"]);
    assert_eq!(run(&db.pool, run_id).await.status, "started");
    let batch = [
        Item::of(&source, json!([1])),
        Item::of(&source, json!("a violation, but late")),
    ];
    assert_eq!(
        complete_batch(&db.pool, &batch).await,
        ["completed", "stale"]
    );
    assert_eq!(
        outline(&db.pool, run_id).await,
        "run started, source completed, m started"
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_list_that_is_too_long_fails_the_run() {
    let (db, worker) = database_with(&[step("source"), step("m").map().deps(&["source"])]).await;
    let run_id = start(&db.pool, "f", json!({})).await;
    let source = claim_one(&db.pool, worker).await;
    let item = Item::of(&source, json!(vec![0; 250_001]));
    assert_eq!(complete_batch(&db.pool, &[item]).await, ["failed"]);
    assert_eq!(
        run(&db.pool, run_id).await.error_message.as_deref(),
        Some(
            "[TYPE_VIOLATION] step \"m\" maps over step \"source\", which must return an array; \
             it returned an array of 250001 elements, of 250000 at most"
        )
    );
    assert_invariants(&db.pool).await;
}
