//! `complete_tasks`: batches of completed attempts.

use serde_json::{Value, json};

use crate::support::TestDb;
use crate::support::flows::{claim, claim_one, fail, start, step};
use crate::support::invariants::assert_invariants;
use crate::support::rows::{archived, messages, raised, run, step_state, task, tasks};
use crate::support::runs::{
    Item, claim_all, complete_batch, database_with, everything, fail_for_good, of_step, outline,
    task_statuses, try_complete_batch,
};

#[tokio::test]
async fn a_batch_over_several_runs_and_steps_completes_each_item() {
    let (db, worker) = database_with(&[
        step("a"),
        step("b"),
        step("after_a").deps(&["a"]),
        step("m").map().deps(&["b"]),
    ])
    .await;
    let first = start(&db.pool, "f", json!({})).await;
    let second = start(&db.pool, "f", json!({})).await;
    let claimed = claim_all(&db.pool, worker).await;
    assert_eq!(claimed.len(), 4);

    let batch: Vec<Item> = claimed
        .iter()
        .map(|t| Item::of(t, json!([t.step_slug, 2])))
        .collect();
    assert_eq!(complete_batch(&db.pool, &batch).await, ["completed"; 4]);

    for run_id in [first, second] {
        assert_eq!(
            outline(&db.pool, run_id).await,
            "run started, a completed, b completed, after_a started, m started"
        );
        assert_eq!(run(&db.pool, run_id).await.remaining_steps, 2);
        assert_eq!(
            step_state(&db.pool, run_id, "a").await.output,
            Some(json!(["a", 2]))
        );
        assert_eq!(task_statuses(&db.pool, run_id, "m").await, "queued, queued");
    }
    assert_eq!(archived(&db.pool, "f").await.len(), 4);
    assert_eq!(messages(&db.pool, "f").await.len(), 6);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn parents_that_end_in_one_batch_start_their_child_once() {
    let (db, worker) = database_with(&[
        step("a"),
        step("b"),
        step("c"),
        step("join").deps(&["a", "b", "c"]),
    ])
    .await;
    let run_id = start(&db.pool, "f", json!({})).await;
    let claimed = claim_all(&db.pool, worker).await;
    let batch: Vec<Item> = claimed
        .iter()
        .map(|t| Item::of(t, json!(t.step_slug)))
        .collect();
    complete_batch(&db.pool, &batch).await;

    let join = claim_one(&db.pool, worker).await;
    assert_eq!(
        (join.run_id, join.input),
        (run_id, json!({"a": "a", "b": "b", "c": "c"}))
    );
    assert_eq!(task_statuses(&db.pool, run_id, "join").await, "started");
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_map_is_counted_down_by_its_part_of_a_batch() {
    let (db, worker) = database_with(&[step("m").map(), step("after").deps(&["m"])]).await;
    let run_id = start(&db.pool, "f", json!([0, 1, 2, 3, 4])).await;
    let claimed = claim_all(&db.pool, worker).await;
    let items: Vec<Item> = claimed
        .iter()
        .map(|t| Item::of(t, t.input.clone()))
        .collect();

    complete_batch(&db.pool, &items[1..4]).await;
    let state = step_state(&db.pool, run_id, "m").await;
    assert_eq!(
        (state.status.as_str(), state.remaining_tasks, state.output),
        ("started", Some(2), None)
    );
    assert_invariants(&db.pool).await;

    complete_batch(&db.pool, &[items[4].clone(), items[0].clone()]).await;
    let state = step_state(&db.pool, run_id, "m").await;
    assert_eq!(
        (state.status.as_str(), state.remaining_tasks),
        ("completed", Some(0))
    );
    assert_eq!(state.output, Some(json!([0, 1, 2, 3, 4])));
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn made_ready_says_whether_new_tasks_were_queued() {
    let (db, worker) = database_with(&[step("m").map(), step("b").deps(&["m"])]).await;
    start(&db.pool, "f", json!([1, 2])).await;
    let mut made_ready = Vec::new();
    while let Some(task) = claim(&db.pool, worker, 1).await.pop() {
        let rows = try_complete_batch(&db.pool, &[Item::of(&task, json!(1))])
            .await
            .expect("completed");
        made_ready.push((task.step_slug, rows[0].made_ready));
    }
    assert_eq!(
        made_ready,
        [
            ("m".to_owned(), false),
            ("m".to_owned(), true),
            ("b".to_owned(), false)
        ]
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn of_a_task_twice_in_a_batch_the_first_speaks() {
    let (db, worker) = database_with(&[step("m").map()]).await;
    let run_id = start(&db.pool, "f", json!([1, 2])).await;
    let task = claim_one(&db.pool, worker).await;
    let batch = [
        Item::of(&task, json!("first")),
        Item::of(&task, json!("second")),
    ];
    assert_eq!(
        complete_batch(&db.pool, &batch).await,
        ["completed", "stale"]
    );
    assert_eq!(
        tasks(&db.pool, run_id, "m").await[0].output,
        Some(json!("first"))
    );
    assert_eq!(
        step_state(&db.pool, run_id, "m").await.remaining_tasks,
        Some(1)
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_stale_attempt_does_not_silence_the_current_one_behind_it() {
    let (db, worker) = database_with(&[step("a")]).await;
    let run_id = start(&db.pool, "f", json!({})).await;
    let old = claim_one(&db.pool, worker).await;
    fail(&db.pool, &old, "timed out").await;
    let current = claim_one(&db.pool, worker).await;
    let batch = [
        Item::of(&old, json!("old")),
        Item::of(&current, json!("current")),
    ];
    assert_eq!(
        complete_batch(&db.pool, &batch).await,
        ["stale", "completed"]
    );
    assert_eq!(
        run(&db.pool, run_id).await.output,
        Some(json!({"a": "current"}))
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn another_attempt_than_the_current_one_changes_nothing() {
    let (db, worker) = database_with(&[step("a"), step("b")]).await;
    start(&db.pool, "f", json!({})).await;
    let old = claim_all(&db.pool, worker).await;
    fail(&db.pool, of_step(&old, "a"), "once more").await;
    let second = claim_one(&db.pool, worker).await;
    assert_eq!(second.attempt, 2);

    let before = everything(&db.pool, "f").await;
    for attempt in [0, 1, 3] {
        let item = Item::of(&second, json!(1)).attempt(attempt);
        assert_eq!(complete_batch(&db.pool, &[item]).await, ["stale"]);
    }
    assert_eq!(everything(&db.pool, "f").await, before);

    let batch = [
        Item::of(of_step(&old, "a"), json!(1)),
        Item::of(of_step(&old, "b"), json!(1)),
    ];
    assert_eq!(
        complete_batch(&db.pool, &batch).await,
        ["stale", "completed"],
        "the rest of the batch counts"
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn an_item_without_an_attempt_speaks_for_the_current_one() {
    let (db, worker) = database_with(&[step("a")]).await;
    let run_id = start(&db.pool, "f", json!({})).await;
    fail(&db.pool, &claim_one(&db.pool, worker).await, "once more").await;
    let second = claim_one(&db.pool, worker).await;
    let item = Item::of(&second, json!(1)).attempt(None);
    assert_eq!(complete_batch(&db.pool, &[item]).await, ["completed"]);
    assert_eq!(run(&db.pool, run_id).await.status, "completed");
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn tasks_that_are_not_started_are_stale() {
    let (db, worker) = database_with(&[
        step("skipped").when_exhausted("skip"),
        step("retried"),
        step("done"),
        step("killer"),
    ])
    .await;
    let run_id = start(&db.pool, "f", json!({})).await;
    let claimed = claim_all(&db.pool, worker).await;
    fail_for_good(&db.pool, of_step(&claimed, "skipped"), "no").await;
    fail(&db.pool, of_step(&claimed, "retried"), "again").await;
    complete_batch(&db.pool, &[Item::of(of_step(&claimed, "done"), json!(1))]).await;

    let items: Vec<Item> = claimed
        .iter()
        .map(|t| Item::of(t, json!(2)).attempt(None))
        .collect();
    let ended: Vec<Item> = items
        .iter()
        .filter(|i| i.step_slug != "killer")
        .cloned()
        .collect();
    let before = everything(&db.pool, "f").await;
    assert_eq!(complete_batch(&db.pool, &ended).await, ["stale"; 3]);
    assert_eq!(
        everything(&db.pool, "f").await,
        before,
        "skipped, queued, completed"
    );

    fail_for_good(&db.pool, of_step(&claimed, "killer"), "no").await;
    assert_eq!(run(&db.pool, run_id).await.status, "failed");
    let before = everything(&db.pool, "f").await;
    assert_eq!(complete_batch(&db.pool, &items).await, ["stale"; 4]);
    assert_eq!(
        everything(&db.pool, "f").await,
        before,
        "cancelled, and failed"
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn an_unknown_item_rolls_the_whole_batch_back() {
    let (db, worker) = database_with(&[step("a")]).await;
    start(&db.pool, "f", json!({})).await;
    let known = Item::of(&claim_one(&db.pool, worker).await, json!(1));
    let before = everything(&db.pool, "f").await;

    let nobody = uuid::Uuid::from_u128(7);
    let unknown = [
        Item {
            run_id: nobody,
            ..known.clone()
        },
        Item {
            step_slug: "b".to_owned(),
            ..known.clone()
        },
        Item {
            task_index: 1,
            ..known.clone()
        },
    ];
    let expected = [
        format!("PF003: there is no task \"a\" [0] in run {nobody}"),
        format!("PF003: there is no task \"b\" [0] in run {}", known.run_id),
        format!("PF003: there is no task \"a\" [1] in run {}", known.run_id),
    ];
    for (unknown, expected) in unknown.into_iter().zip(expected) {
        let batch = [known.clone(), unknown];
        assert_eq!(raised(try_complete_batch(&db.pool, &batch).await), expected);
        assert_eq!(everything(&db.pool, "f").await, before);
    }
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn arrays_of_different_lengths_are_refused() {
    let db = TestDb::new().await;
    let calls = [
        "select * from pgflow.complete_tasks(array[gen_random_uuid()], '{a,b}', '{0}', '{1}', array['1']::jsonb[])",
        "select * from pgflow.complete_tasks(array[gen_random_uuid()], '{a}', '{0}', null, array['1']::jsonb[])",
        "select * from pgflow.complete_tasks('{}', '{}', '{}', '{}', array['1']::jsonb[])",
        "select * from pgflow.complete_tasks(null, null, null, '{1}', null)",
    ];
    for call in calls {
        assert_eq!(
            raised(sqlx::query(call).fetch_all(&db.pool).await),
            "PF009: complete_tasks got arrays of different lengths",
            "{call}"
        );
    }
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn an_empty_batch_does_nothing() {
    let db = TestDb::new().await;
    assert_eq!(complete_batch(&db.pool, &[]).await, [""; 0]);
    let rows = sqlx::query("select * from pgflow.complete_tasks(null, null, null, null, null)")
        .fetch_all(&db.pool)
        .await
        .expect("no arrays are an empty batch");
    assert!(rows.is_empty());
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn falsy_outputs_survive() {
    let (db, worker) = database_with(&[step("a"), step("b").deps(&["a"])]).await;
    let sent = [
        Some(json!(0)),
        Some(json!(false)),
        Some(json!("")),
        Some(json!([])),
        Some(json!({})),
        Some(Value::Null),
        None,
    ];
    for output in sent {
        let stored = output.clone().unwrap_or(Value::Null);
        let run_id = start(&db.pool, "f", json!({})).await;
        for expected_input in [json!({}), json!({"a": stored})] {
            let claimed = claim_one(&db.pool, worker).await;
            assert_eq!(claimed.input, expected_input);
            let item = Item {
                output: output.clone(),
                ..Item::of(&claimed, Value::Null)
            };
            assert_eq!(complete_batch(&db.pool, &[item]).await, ["completed"]);
        }
        let output = Some(stored.clone());
        assert_eq!(task(&db.pool, run_id, "a").await.output, output);
        assert_eq!(step_state(&db.pool, run_id, "a").await.output, output);
        assert_eq!(
            run(&db.pool, run_id).await.output,
            Some(json!({"b": stored}))
        );
    }
    assert_invariants(&db.pool).await;
}
