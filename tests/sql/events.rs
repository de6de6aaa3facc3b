//! Events: which, in which order, at which level. `realtime` has the sink with payloads.

use serde_json::{Value, json};

use crate::support::events::Events;
use crate::support::flows::{claim_one, complete, drain, fail, start, step};
use crate::support::invariants::assert_invariants;
use crate::support::runs::{
    Item, age, claim_all, complete_batch, database_with, fail_for_good, of_step, requeue,
};

#[tokio::test]
async fn at_level_off_nothing_is_told() {
    let (db, worker) = database_with(&[step("a"), step("b").deps(&["a"])]).await;
    let mut events = Events::at_level(&db.pool, "off").await;
    start(&db.pool, "f", json!({})).await;
    drain(&db.pool, worker, |_| json!(1)).await;
    start(&db.pool, "f", json!({})).await;
    fail_for_good(&db.pool, &claim_one(&db.pool, worker).await, "x").await;
    assert_eq!(events.types(&db.pool).await, "");
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn at_level_runs_only_the_ends_of_runs_are_told() {
    let (db, worker) = database_with(&[step("a"), step("b").deps(&["a"])]).await;
    let mut events = Events::at_level(&db.pool, "runs").await;
    let first = start(&db.pool, "f", json!({})).await;
    drain(&db.pool, worker, |_| json!("a secret")).await;
    let second = start(&db.pool, "f", json!({})).await;
    fail_for_good(&db.pool, &claim_one(&db.pool, worker).await, "a secret").await;
    assert_eq!(
        events.payloads(&db.pool).await,
        [
            json!({"event_type": "run:completed", "run_id": first}),
            json!({"event_type": "run:failed", "run_id": second}),
        ],
        "ids only"
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn runs_is_the_level_of_a_new_database() {
    let (db, _) = database_with(&[]).await;
    let level: String = sqlx::query_scalar("select event_level from pgflow.installation")
        .fetch_one(&db.pool)
        .await
        .expect("the level can be read");
    assert_eq!(level, "runs");
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn at_level_all_every_step_is_told_in_order() {
    let (db, worker) = database_with(&[
        step("list"),
        step("each").map().deps(&["list"]),
        step("after").deps(&["each"]),
    ])
    .await;
    let mut events = Events::at_level(&db.pool, "all").await;
    let run_id = start(&db.pool, "f", json!({})).await;
    assert_eq!(
        events.payloads(&db.pool).await,
        [
            json!({"event_type": "run:started", "run_id": run_id}),
            json!({"event_type": "step:started", "run_id": run_id, "step_slug": "list"}),
        ]
    );
    complete(&db.pool, &claim_one(&db.pool, worker).await, json!([1, 2])).await;
    assert_eq!(
        events.types(&db.pool).await,
        "step:completed list, step:started each"
    );
    let elements = claim_all(&db.pool, worker).await;
    complete(&db.pool, &elements[1], json!(1)).await;
    assert_eq!(events.types(&db.pool).await, "", "tasks are not told");
    complete(&db.pool, &elements[0], json!(1)).await;
    assert_eq!(
        events.types(&db.pool).await,
        "step:completed each, step:started after"
    );
    complete(&db.pool, &claim_one(&db.pool, worker).await, json!(1)).await;
    assert_eq!(
        events.types(&db.pool).await,
        "step:completed after, run:completed"
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn an_empty_map_is_completed_without_being_started_its_source_first() {
    let (db, worker) = database_with(&[
        step("z_source"),
        step("y_map").map().deps(&["z_source"]),
        step("x_map").map().deps(&["y_map"]),
        step("a_single").deps(&["x_map"]),
    ])
    .await;
    let mut events = Events::at_level(&db.pool, "all").await;
    start(&db.pool, "f", json!({})).await;
    events.types(&db.pool).await;
    complete(&db.pool, &claim_one(&db.pool, worker).await, json!([])).await;
    assert_eq!(
        events.types(&db.pool).await,
        "step:completed z_source, step:completed y_map, step:completed x_map, step:started a_single"
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_flow_of_nothing_but_empty_maps_tells_of_each_once_and_then_of_its_end() {
    let slugs: Vec<String> = (0..60).rev().map(|n| format!("m{n}")).collect();
    let mut steps = vec![step(&slugs[0]).map()];
    for pair in slugs.windows(2) {
        steps.push(step(&pair[1]).map().deps(&[&pair[0]]));
    }
    let (db, _) = database_with(&steps).await;
    let mut events = Events::at_level(&db.pool, "all").await;
    start(&db.pool, "f", json!([])).await;
    let completed: Vec<String> = slugs
        .iter()
        .map(|m| format!("step:completed {m}"))
        .collect();
    assert_eq!(
        events.types(&db.pool).await,
        format!("run:started, {}, run:completed", completed.join(", "))
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_retry_and_a_recovery_tell_nothing() {
    let (db, worker) = database_with(&[step("a")]).await;
    let mut events = Events::at_level(&db.pool, "all").await;
    let run_id = start(&db.pool, "f", json!({})).await;
    events.types(&db.pool).await;
    fail(&db.pool, &claim_one(&db.pool, worker).await, "again").await;
    claim_one(&db.pool, worker).await;
    age(&db.pool, run_id, "a", 3600).await;
    assert_eq!(requeue(&db.pool).await, 1);
    assert_eq!(events.types(&db.pool).await, "");
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_failure_tells_of_the_step_then_of_the_run_and_once() {
    let (db, worker) = database_with(&[step("a"), step("b")]).await;
    let mut events = Events::at_level(&db.pool, "all").await;
    start(&db.pool, "f", json!({})).await;
    events.types(&db.pool).await;
    let claimed = claim_all(&db.pool, worker).await;
    fail_for_good(&db.pool, of_step(&claimed, "b"), "x").await;
    assert_eq!(events.types(&db.pool).await, "step:failed b, run:failed");
    for task in &claimed {
        fail_for_good(&db.pool, task, "late").await;
        complete(&db.pool, task, json!("late")).await;
    }
    assert_eq!(
        events.types(&db.pool).await,
        "",
        "late reports tell nothing"
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn all_three_ways_to_fail_tell_the_same() {
    let (db, worker) = database_with(&[
        step("a"),
        step("m").map().deps(&["a"]),
        step("strict")
            .deps(&["m"])
            .required(json!({"m": [1]}))
            .when_unmet("fail"),
    ])
    .await;
    let mut events = Events::at_level(&db.pool, "all").await;
    for (output, expected) in [
        (None, "step:failed a, run:failed"),
        (Some(json!({})), "step:failed a, run:failed"),
        (
            Some(json!([])),
            "step:completed a, step:completed m, step:failed strict, run:failed",
        ),
    ] {
        start(&db.pool, "f", json!({})).await;
        assert_eq!(events.types(&db.pool).await, "run:started, step:started a");
        let claimed = claim_one(&db.pool, worker).await;
        match output {
            None => fail_for_good(&db.pool, &claimed, "x").await,
            Some(output) => complete(&db.pool, &claimed, output).await,
        };
        assert_eq!(events.types(&db.pool).await, expected);
    }
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_run_that_fails_at_its_start_tells_of_both() {
    let (db, _) = database_with(&[
        step("strict")
            .required(json!({"never": 1}))
            .when_unmet("fail"),
        step("other"),
    ])
    .await;
    let mut events = Events::at_level(&db.pool, "all").await;
    start(&db.pool, "f", json!({})).await;
    assert_eq!(
        events.types(&db.pool).await,
        "run:started, step:failed strict, run:failed"
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_cascade_tells_of_each_step_once_in_the_order_of_the_definition() {
    let (db, worker) = database_with(&[
        step("z").when_exhausted("skip-cascade"),
        step("y").deps(&["z"]),
        step("x").deps(&["z"]),
        step("a").deps(&["x", "y"]),
        step("b"),
    ])
    .await;
    let mut events = Events::at_level(&db.pool, "all").await;
    start(&db.pool, "f", json!({})).await;
    events.types(&db.pool).await;
    let claimed = claim_all(&db.pool, worker).await;
    fail_for_good(&db.pool, of_step(&claimed, "z"), "x").await;
    assert_eq!(
        events.types(&db.pool).await,
        "step:skipped z, step:skipped y, step:skipped x, step:skipped a"
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn conditions_tell_of_skips_before_of_what_they_set_free() {
    let (db, _) = database_with(&[
        step("skips").required(json!({"never": 1})),
        step("after").deps(&["skips"]),
        step("also_skips")
            .deps(&["skips"])
            .required(json!({"skips": 1})),
    ])
    .await;
    let mut events = Events::at_level(&db.pool, "all").await;
    start(&db.pool, "f", json!({})).await;
    assert_eq!(
        events.types(&db.pool).await,
        "run:started, step:skipped skips, step:skipped also_skips, step:started after"
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_batch_tells_of_each_of_its_runs() {
    let (db, worker) = database_with(&[step("a")]).await;
    let mut events = Events::at_level(&db.pool, "all").await;
    for _ in 0..3 {
        start(&db.pool, "f", json!({})).await;
    }
    events.types(&db.pool).await;
    let items: Vec<Item> = claim_all(&db.pool, worker)
        .await
        .iter()
        .map(|task| Item::of(task, Value::Null))
        .collect();
    complete_batch(&db.pool, &items).await;
    let told = events.types(&db.pool).await;
    assert_eq!(told.matches("step:completed a").count(), 3, "{told}");
    assert_eq!(told.matches("run:completed").count(), 3, "{told}");
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn what_is_rolled_back_is_not_told() {
    let (db, worker) = database_with(&[step("a")]).await;
    let mut events = Events::at_level(&db.pool, "all").await;
    start(&db.pool, "f", json!({})).await;
    let claimed = claim_one(&db.pool, worker).await;
    events.types(&db.pool).await;
    let mut transaction = db.pool.begin().await.expect("a transaction");
    complete(&mut *transaction, &claimed, json!(1)).await;
    transaction.rollback().await.expect("it is rolled back");
    assert_eq!(events.types(&db.pool).await, "");
    complete(&db.pool, &claimed, json!(1)).await;
    assert_eq!(
        events.types(&db.pool).await,
        "step:completed a, run:completed"
    );
    assert_invariants(&db.pool).await;
}
