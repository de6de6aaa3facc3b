//! Map steps: one task per element, an array of outputs in the order of the elements. Empty ones
//! are in `empty_maps`.

use serde_json::{Value, json};

use crate::support::flows::{claim, claim_one, complete, drain, fail, start, step};
use crate::support::invariants::assert_invariants;
use crate::support::rows::{messages, run, step_state};
use crate::support::runs::{
    Item, claim_all, complete_batch, database_with, drain_in_random_order, outline, random,
    task_statuses,
};

#[tokio::test]
async fn a_root_map_runs_over_the_flows_input() {
    let (db, worker) = database_with(&[step("m").map()]).await;
    let run_id = start(&db.pool, "f", json!(["x", "y", "z"])).await;
    let state = step_state(&db.pool, run_id, "m").await;
    assert_eq!(
        (
            state.status.as_str(),
            state.initial_tasks,
            state.remaining_tasks
        ),
        ("started", Some(3), Some(3))
    );
    let claimed = claim_all(&db.pool, worker).await;
    let inputs: Vec<(i32, &Value)> = claimed.iter().map(|t| (t.task_index, &t.input)).collect();
    assert_eq!(
        inputs,
        [(0, &json!("x")), (1, &json!("y")), (2, &json!("z"))]
    );
    for task in &claimed {
        complete(&db.pool, task, json!({"was": task.input})).await;
    }
    assert_eq!(
        run(&db.pool, run_id).await.output,
        Some(json!({"m": [{"was": "x"}, {"was": "y"}, {"was": "z"}]}))
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_dependent_map_has_no_size_before_its_source_is_complete() {
    let (db, worker) = database_with(&[
        step("source").map(),
        step("m").map().deps(&["source"]),
        step("m2").map().deps(&["m"]),
    ])
    .await;
    let run_id = start(&db.pool, "f", json!([10, 20])).await;
    let claimed = claim_all(&db.pool, worker).await;
    complete(&db.pool, &claimed[1], json!(21)).await;
    for step in ["m", "m2"] {
        let state = step_state(&db.pool, run_id, step).await;
        assert_eq!(
            (state.status.as_str(), state.initial_tasks),
            ("created", None)
        );
    }
    complete(&db.pool, &claimed[0], json!(11)).await;
    assert_eq!(
        step_state(&db.pool, run_id, "m").await.initial_tasks,
        Some(2)
    );
    assert_eq!(step_state(&db.pool, run_id, "m2").await.initial_tasks, None);
    let inputs: Vec<Value> = claim_all(&db.pool, worker)
        .await
        .into_iter()
        .map(|t| t.input)
        .collect();
    assert_eq!(inputs, [json!(11), json!(21)]);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn elements_of_any_type_arrive_as_they_are() {
    let elements = json!([
        null, true, false, 0, -1.5, 1e300, 12_345_678_901_234_567_890_u64, "", "Grüße, \u{1F980}", "\"quoted\\\"",
        [], [[1, 2], [3, [4]]], {}, {"nested": {"list": [1, null]}}, {"nested": {"list": [1, null]}}
    ]);
    let (db, worker) = database_with(&[
        step("source"),
        step("m").map().deps(&["source"]),
        step("after").deps(&["m"]),
    ])
    .await;
    let run_id = start(&db.pool, "f", json!({})).await;
    complete(
        &db.pool,
        &claim_one(&db.pool, worker).await,
        elements.clone(),
    )
    .await;
    assert_eq!(
        step_state(&db.pool, run_id, "m").await.initial_tasks,
        Some(15),
        "only the top level counts, duplicates too"
    );
    for (task, expected) in claim_all(&db.pool, worker)
        .await
        .iter()
        .zip(elements.as_array().expect("an array"))
    {
        assert_eq!(&task.input, expected);
        complete(&db.pool, task, task.input.clone()).await;
    }
    let after = claim_one(&db.pool, worker).await;
    assert_eq!(
        after.input,
        json!({"m": elements}),
        "nulls keep their place"
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn outputs_stand_in_the_order_of_the_elements_whatever_ends_first() {
    let (db, worker) = database_with(&[
        step("m").map(),
        step("again").map().deps(&["m"]),
        step("after").deps(&["again"]),
    ])
    .await;
    let input: Vec<i32> = (0..40).collect();
    let mut random = random("outputs_stand_in_the_order_of_the_elements_whatever_ends_first");
    for _ in 0..3 {
        let run_id = start(&db.pool, "f", json!(input)).await;
        let reported = drain_in_random_order(&db.pool, worker, &mut random, |task| {
            Ok(match task.step_slug.as_str() {
                "after" => task.input.clone(),
                _ => json!(task.input.as_i64().expect("a number") + 1),
            })
        })
        .await;
        assert_eq!(reported, 81);
        let expected: Vec<i32> = (2..42).collect();
        assert_eq!(
            run(&db.pool, run_id).await.output,
            Some(json!({"after": {"again": expected}}))
        );
    }
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_map_of_one_element_gives_an_array_of_one() {
    let (db, worker) = database_with(&[step("m").map(), step("m2").map().deps(&["m"])]).await;
    let run_id = start(&db.pool, "f", json!([[1, 2]])).await;
    assert_eq!(drain(&db.pool, worker, |task| json!([task.input])).await, 2);
    assert_eq!(
        run(&db.pool, run_id).await.output,
        Some(json!({"m2": [[[[1, 2]]]]}))
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn ten_chained_maps_hand_their_elements_on() {
    let slugs: Vec<String> = (0..10).map(|n| format!("m{n}")).collect();
    let mut steps = vec![step("m0").map()];
    for pair in slugs.windows(2) {
        steps.push(step(&pair[1]).map().deps(&[&pair[0]]));
    }
    let (db, worker) = database_with(&steps).await;
    let run_id = start(&db.pool, "f", json!([0, 100, 200])).await;
    let completed = drain(&db.pool, worker, |task| {
        json!(task.input.as_i64().expect("a number") + 1)
    })
    .await;
    assert_eq!(completed, 30);
    assert_eq!(
        run(&db.pool, run_id).await.output,
        Some(json!({"m9": [10, 110, 210]}))
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn two_maps_and_a_single_step_share_one_source() {
    let (db, worker) = database_with(&[
        step("source"),
        step("double").map().deps(&["source"]),
        step("negate").map().deps(&["source"]),
        step("whole").deps(&["source"]),
        step("join").deps(&["double", "negate", "whole"]),
    ])
    .await;
    let run_id = start(&db.pool, "f", json!({})).await;
    drain(&db.pool, worker, |task| match task.step_slug.as_str() {
        "source" => json!([1, 2]),
        "double" => json!(task.input.as_i64().expect("a number") * 2),
        "negate" => json!(-task.input.as_i64().expect("a number")),
        _ => task.input.clone(),
    })
    .await;
    assert_eq!(
        run(&db.pool, run_id).await.output,
        Some(json!({"join": {"double": [2, 4], "negate": [-1, -2], "whole": {"source": [1, 2]}}}))
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn roots_of_both_kinds_run_over_one_input() {
    let (db, worker) = database_with(&[step("m").map(), step("whole"), step("m2").map()]).await;
    let run_id = start(&db.pool, "f", json!([1, 2])).await;
    assert_eq!(drain(&db.pool, worker, |task| task.input.clone()).await, 5);
    assert_eq!(
        run(&db.pool, run_id).await.output,
        Some(json!({"m": [1, 2], "whole": [1, 2], "m2": [1, 2]}))
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_thousand_elements_run_in_batches() {
    let (db, worker) = database_with(&[step("m").map(), step("m2").map().deps(&["m"])]).await;
    let input: Vec<i32> = (0..1000).collect();
    let run_id = start(&db.pool, "f", json!(input)).await;
    let mut completed = 0;
    loop {
        let claimed = claim(&db.pool, worker, 100).await;
        if claimed.is_empty() {
            break;
        }
        completed += claimed.len();
        let batch: Vec<Item> = claimed
            .iter()
            .map(|t| Item::of(t, t.input.clone()))
            .collect();
        complete_batch(&db.pool, &batch).await;
    }
    assert_eq!(completed, 2000);
    assert_eq!(
        run(&db.pool, run_id).await.output,
        Some(json!({"m2": input}))
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn nothing_starts_after_a_map_before_its_last_element_ends() {
    let (db, worker) = database_with(&[step("m").map(), step("after").deps(&["m"])]).await;
    let run_id = start(&db.pool, "f", json!([1, 2, 3])).await;
    let claimed = claim_all(&db.pool, worker).await;
    for task in [&claimed[2], &claimed[0]] {
        complete(&db.pool, task, json!(1)).await;
        assert_eq!(
            outline(&db.pool, run_id).await,
            "run started, m started, after created"
        );
        assert_eq!(claim(&db.pool, worker, 10).await, []);
    }
    complete(&db.pool, &claimed[1], json!(1)).await;
    assert_eq!(
        outline(&db.pool, run_id).await,
        "run started, m completed, after started"
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn an_exhausted_element_fails_the_run_and_gives_no_output() {
    let (db, worker) =
        database_with(&[step("m").map().max_attempts(1), step("after").deps(&["m"])]).await;
    let run_id = start(&db.pool, "f", json!([1, 2, 3, 4])).await;
    let claimed = claim(&db.pool, worker, 3).await;
    complete(&db.pool, &claimed[0], json!("kept")).await;
    fail(&db.pool, &claimed[2], "x").await;
    assert_eq!(
        outline(&db.pool, run_id).await,
        "run failed, m failed, after created"
    );
    assert_eq!(
        task_statuses(&db.pool, run_id, "m").await,
        "completed, cancelled, failed, cancelled"
    );
    let state = step_state(&db.pool, run_id, "m").await;
    assert_eq!((state.output, state.remaining_tasks), (None, Some(3)));
    assert_eq!(messages(&db.pool, "f").await, []);
    assert_eq!(claim(&db.pool, worker, 10).await, []);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_start_delay_holds_for_every_element() {
    let (db, worker) =
        database_with(&[step("a"), step("m").map().deps(&["a"]).start_delay(3600)]).await;
    let run_id = start(&db.pool, "f", json!({})).await;
    complete(&db.pool, &claim_one(&db.pool, worker).await, json!([1, 2])).await;
    assert_eq!(
        outline(&db.pool, run_id).await,
        "run started, a completed, m started"
    );
    assert_eq!(claim(&db.pool, worker, 10).await, []);
    let hidden: Vec<i32> = messages(&db.pool, "f")
        .await
        .iter()
        .map(|m| m.hidden_for)
        .collect();
    assert_eq!(hidden.len(), 2);
    assert!(
        hidden.iter().all(|&s| (3000..=3600).contains(&s)),
        "{hidden:?}"
    );
    assert_invariants(&db.pool).await;
}
