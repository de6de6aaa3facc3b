//! Maps over nothing: complete at once, with `[]`, whatever is behind them follows in the same
//! call.

use serde_json::{Value, json};

use crate::support::flows::{Step, claim_one, complete, start, step};
use crate::support::invariants::assert_invariants;
use crate::support::rows::{count, messages, run, step_state};
use crate::support::runs::{claim_all, database_with, everything, of_step, outline};

#[tokio::test]
async fn an_empty_root_map_completes_its_flow_at_the_start() {
    let (db, _) = database_with(&[step("m").map()]).await;
    let run_id = start(&db.pool, "f", json!([])).await;
    let run = run(&db.pool, run_id).await;
    assert_eq!(run.status, "completed");
    assert_eq!(run.output, Some(json!({"m": []})));
    assert_eq!(run.remaining_steps, 0);
    let state = step_state(&db.pool, run_id, "m").await;
    assert_eq!(
        (state.initial_tasks, state.remaining_tasks, state.output),
        (Some(0), Some(0), Some(json!([])))
    );
    assert_eq!(count(&db.pool, "pgflow.step_tasks").await, 0);
    assert_eq!(messages(&db.pool, "f").await, []);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn an_empty_map_goes_from_created_to_completed() {
    let (db, _) = database_with(&[step("m").map()]).await;
    start(&db.pool, "f", json!([])).await;
    let transitions: Vec<String> = sqlx::query_scalar(
        "select concat_ws(' ', kind, step_slug, new_status) from test_log.transitions order by n",
    )
    .fetch_all(&db.pool)
    .await
    .expect("the log can be read");
    assert_eq!(
        transitions,
        [
            "run started",
            "step m created",
            "step m completed",
            "run completed"
        ]
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn an_empty_array_empties_the_maps_that_depend_on_it() {
    let (db, worker) = database_with(&[
        step("source"),
        step("m").map().deps(&["source"]),
        step("m2").map().deps(&["m"]),
        step("other"),
    ])
    .await;
    let run_id = start(&db.pool, "f", json!({})).await;
    let claimed = claim_all(&db.pool, worker).await;
    complete(&db.pool, of_step(&claimed, "source"), json!([])).await;
    assert_eq!(
        outline(&db.pool, run_id).await,
        "run started, source completed, m completed, m2 completed, other started"
    );
    complete(&db.pool, of_step(&claimed, "other"), json!(1)).await;
    assert_eq!(
        run(&db.pool, run_id).await.output,
        Some(json!({"m2": [], "other": 1}))
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn two_hundred_chained_empty_maps_complete_in_one_call() {
    let slugs: Vec<String> = (0..200).map(|n| format!("m{n}")).collect();
    let chain: Vec<Step> = (0..200)
        .map(|n| match n {
            0 => step("m0").map(),
            _ => step(&slugs[n]).map().deps(&[&slugs[n - 1]]),
        })
        .collect();
    let (db, _) = database_with(&chain).await;
    let run_id = start(&db.pool, "f", json!([])).await;
    let run = run(&db.pool, run_id).await;
    assert_eq!(run.status, "completed");
    assert_eq!(run.output, Some(json!({"m199": []})));
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn single_steps_after_empty_maps_start_with_empty_arrays() {
    let (db, worker) = database_with(&[
        step("m").map(),
        step("m2").map(),
        step("of_one").deps(&["m"]),
        step("of_both").deps(&["m", "m2"]),
    ])
    .await;
    let run_id = start(&db.pool, "f", json!([])).await;
    assert_eq!(
        outline(&db.pool, run_id).await,
        "run started, m completed, m2 completed, of_one started, of_both started"
    );
    let claimed = claim_all(&db.pool, worker).await;
    assert_eq!(of_step(&claimed, "of_one").input, json!({"m": []}));
    assert_eq!(
        of_step(&claimed, "of_both").input,
        json!({"m": [], "m2": []})
    );
    for task in &claimed {
        complete(&db.pool, task, Value::Null).await;
    }
    assert_eq!(run(&db.pool, run_id).await.status, "completed");
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_join_behind_an_empty_map_waits_for_its_other_dependency() {
    let (db, worker) =
        database_with(&[step("m").map(), step("a"), step("join").deps(&["m", "a"])]).await;
    let run_id = start(&db.pool, "f", json!([])).await;
    assert_eq!(
        outline(&db.pool, run_id).await,
        "run started, m completed, a started, join created"
    );
    assert_eq!(step_state(&db.pool, run_id, "join").await.remaining_deps, 1);
    complete(&db.pool, &claim_one(&db.pool, worker).await, json!(1)).await;
    assert_eq!(
        claim_one(&db.pool, worker).await.input,
        json!({"m": [], "a": 1})
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn empty_maps_complete_once_in_each_of_several_runs() {
    let (db, worker) = database_with(&[
        step("source"),
        step("m").map().deps(&["source"]),
        step("after").deps(&["m"]),
    ])
    .await;
    let empty = start(&db.pool, "f", json!({})).await;
    let full = start(&db.pool, "f", json!({})).await;
    for task in claim_all(&db.pool, worker).await {
        let output = if task.run_id == empty {
            json!([])
        } else {
            json!([1])
        };
        complete(&db.pool, &task, output).await;
    }
    assert_eq!(
        outline(&db.pool, empty).await,
        "run started, source completed, m completed, after started"
    );
    assert_eq!(
        outline(&db.pool, full).await,
        "run started, source completed, m started, after created"
    );
    assert_invariants(&db.pool).await;
}

/// A map that is ready and empty when a condition fails its run is left as it is, whoever asks.
#[tokio::test]
async fn a_failed_run_completes_no_empty_map() {
    let (db, _) = database_with(&[
        step("m").map(),
        step("strict")
            .required(json!({"never": 1}))
            .when_unmet("fail"),
        step("after").deps(&["m"]),
    ])
    .await;
    let run_id = start(&db.pool, "f", json!([])).await;
    let expected = "run failed, m created, strict failed, after created";
    assert_eq!(outline(&db.pool, run_id).await, expected);
    let ready = step_state(&db.pool, run_id, "m").await;
    assert_eq!((ready.remaining_deps, ready.initial_tasks), (0, Some(0)));
    let before = everything(&db.pool, "f").await;
    let answers: (i32, bool) = sqlx::query_as(
        "select pgflow._complete_taskless_steps(array[$1]), pgflow._advance_runs(array[$1])",
    )
    .bind(run_id)
    .fetch_one(&db.pool)
    .await
    .expect("a failed run can be asked for");
    assert_eq!(answers, (0, false));
    assert_eq!(everything(&db.pool, "f").await, before);
    assert_invariants(&db.pool).await;
}
