//! The end of runs: their output, and the condition for it.

use serde_json::{Value, json};

use crate::support::flows::{Step, claim_one, complete, drain, start, step};
use crate::support::invariants::assert_invariants;
use crate::support::rows::{run, step_state, task};
use crate::support::runs::{
    claim_all, database_with, drain_in_random_order, fail_for_good, of_step, outline, random,
};

#[tokio::test]
async fn the_output_holds_the_leaves_only() {
    let (db, worker) = database_with(&[
        step("root"),
        step("leaf").deps(&["root"]),
        step("middle").deps(&["root"]),
        step("list").map().deps(&["middle"]),
        step("lonely"),
    ])
    .await;
    let run_id = start(&db.pool, "f", json!({"q": 1})).await;
    drain(&db.pool, worker, |task| match task.step_slug.as_str() {
        "middle" => json!(["a", "b"]),
        "leaf" => Value::Null,
        step => json!(step),
    })
    .await;
    assert_eq!(
        run(&db.pool, run_id).await.output,
        Some(json!({"leaf": null, "list": ["list", "list"], "lonely": "lonely"}))
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_run_ends_with_its_last_step_and_not_before() {
    let (db, worker) =
        database_with(&[step("a"), step("b").deps(&["a"]), step("c").deps(&["b"])]).await;
    let run_id = start(&db.pool, "f", json!({})).await;
    let mut seen = Vec::new();
    for _ in 0..3 {
        let before = run(&db.pool, run_id).await;
        seen.push((before.status, before.remaining_steps, before.output));
        complete(&db.pool, &claim_one(&db.pool, worker).await, json!(1)).await;
    }
    let after = run(&db.pool, run_id).await;
    seen.push((after.status, after.remaining_steps, after.output));
    let started = "started".to_owned();
    assert_eq!(
        seen,
        [
            (started.clone(), 3, None),
            (started.clone(), 2, None),
            (started, 1, None),
            ("completed".to_owned(), 0, Some(json!({"c": 1}))),
        ]
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_diamond_joins_once_in_any_order() {
    let (db, worker) = database_with(&[
        step("top"),
        step("left").deps(&["top"]),
        step("right").deps(&["top"]),
        step("bottom").deps(&["left", "right"]),
    ])
    .await;
    for order in [["left", "right"], ["right", "left"]] {
        let run_id = start(&db.pool, "f", json!({})).await;
        complete(&db.pool, &claim_one(&db.pool, worker).await, json!(0)).await;
        let claimed = claim_all(&db.pool, worker).await;
        assert_eq!(claimed.len(), 2);
        complete(&db.pool, of_step(&claimed, order[0]), json!(order[0])).await;
        let bottom = step_state(&db.pool, run_id, "bottom").await;
        assert_eq!(
            (bottom.status.as_str(), bottom.remaining_deps),
            ("created", 1)
        );
        complete(&db.pool, of_step(&claimed, order[1]), json!(order[1])).await;
        let bottom = claim_one(&db.pool, worker).await;
        assert_eq!(bottom.input, json!({"left": "left", "right": "right"}));
        complete(&db.pool, &bottom, json!("done")).await;
        assert_eq!(
            run(&db.pool, run_id).await.output,
            Some(json!({"bottom": "done"}))
        );
    }
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_flow_without_steps_completes_at_once() {
    let (db, _) = database_with(&[]).await;
    let run_id = start(&db.pool, "f", Value::Null).await;
    let run = run(&db.pool, run_id).await;
    assert_eq!((run.status.as_str(), run.output), ("completed", None));
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn skipped_leaves_are_absent_and_a_run_of_nothing_but_skips_has_no_output() {
    let (db, worker) = database_with(&[
        step("a"),
        step("b").required(json!({"b": true})),
        step("c").deps(&["a"]).required(json!({"a": "yes"})),
    ])
    .await;
    let some = start(&db.pool, "f", json!({})).await;
    complete(&db.pool, &claim_one(&db.pool, worker).await, json!("no")).await;
    assert_eq!(
        outline(&db.pool, some).await,
        "run completed, a completed, b skipped: condition_unmet, c skipped: condition_unmet"
    );
    assert_eq!(run(&db.pool, some).await.output, None, "`a` is no leaf");

    let more = start(&db.pool, "f", json!({"b": true})).await;
    drain(&db.pool, worker, |task| json!(task.step_slug)).await;
    assert_eq!(run(&db.pool, more).await.output, Some(json!({"b": "b"})));
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn runs_of_one_flow_end_apart_from_each_other() {
    let (db, worker) = database_with(&[step("a"), step("b").deps(&["a"])]).await;
    let first = start(&db.pool, "f", json!(1)).await;
    let second = start(&db.pool, "f", json!(2)).await;
    let third = start(&db.pool, "f", json!(3)).await;
    let claimed = claim_all(&db.pool, worker).await;
    let of = |run_id| {
        let found = claimed.iter().find(|t| t.run_id == run_id);
        found.expect("it was claimed")
    };
    assert_eq!(of(second).input, json!(2));
    fail_for_good(&db.pool, of(first), "x").await;
    complete(&db.pool, of(second), json!(1)).await;
    assert_eq!(
        outline(&db.pool, first).await,
        "run failed, a failed, b created"
    );
    assert_eq!(
        outline(&db.pool, second).await,
        "run started, a completed, b started"
    );
    assert_eq!(
        outline(&db.pool, third).await,
        "run started, a started, b created"
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_wide_flow_ends_in_any_order() {
    let slugs: Vec<String> = (0..50).map(|n| format!("s{n}")).collect();
    let mut steps: Vec<Step> = slugs.iter().map(|slug| step(slug)).collect();
    let all: Vec<&str> = slugs.iter().map(String::as_str).collect();
    steps.push(step("join").deps(&all));
    let (db, worker) = database_with(&steps).await;
    let run_id = start(&db.pool, "f", json!({})).await;
    let mut random = random("a_wide_flow_ends_in_any_order");
    let reported = drain_in_random_order(&db.pool, worker, &mut random, |task| {
        Ok(match task.step_slug.as_str() {
            "join" => json!(task.input.as_object().expect("an object").len()),
            _ => json!(1),
        })
    })
    .await;
    assert_eq!(reported, 51);
    assert_eq!(
        run(&db.pool, run_id).await.output,
        Some(json!({"join": 50}))
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_mixed_flow_ends_the_same_in_any_order_with_retries_on_the_way() {
    let (db, worker) = database_with(&[
        step("list"),
        step("each").map().deps(&["list"]),
        step("fragile").when_exhausted("skip-cascade"),
        step("after_fragile").deps(&["fragile"]),
        step("optional")
            .deps(&["list"])
            .required(json!({"list": [99]})),
        step("join").deps(&["each", "optional"]),
    ])
    .await;
    let mut random = random("a_mixed_flow_ends_the_same_in_any_order");
    for _ in 0..6 {
        let run_id = start(&db.pool, "f", json!({})).await;
        drain_in_random_order(&db.pool, worker, &mut random, |task| {
            match task.step_slug.as_str() {
                "list" if task.attempt < 3 => Err("not yet".to_owned()),
                "list" => Ok(json!([1, 2, 3, 4, 5])),
                "each" if task.attempt == 1 && task.task_index % 2 == 0 => Err("odd".to_owned()),
                "fragile" => Err("never".to_owned()),
                _ => Ok(task.input.clone()),
            }
        })
        .await;
        assert_eq!(
            outline(&db.pool, run_id).await,
            "run completed, list completed, each completed, fragile skipped: handler_failed, \
             after_fragile skipped: dependency_skipped, optional skipped: condition_unmet, join completed"
        );
        assert_eq!(
            run(&db.pool, run_id).await.output,
            Some(json!({"join": {"each": [1, 2, 3, 4, 5]}}))
        );
        assert_eq!(task(&db.pool, run_id, "fragile").await.attempts_count, 3);
        assert_invariants(&db.pool).await;
    }
}

#[tokio::test]
async fn each_end_is_stamped_once_and_after_what_it_follows() {
    let (db, worker) = database_with(&[
        step("a"),
        step("b").deps(&["a"]).when_exhausted("skip"),
        step("c").deps(&["b"]),
    ])
    .await;
    let completed = start(&db.pool, "f", json!({})).await;
    complete(&db.pool, &claim_one(&db.pool, worker).await, json!(1)).await;
    fail_for_good(&db.pool, &claim_one(&db.pool, worker).await, "x").await;
    complete(&db.pool, &claim_one(&db.pool, worker).await, json!(1)).await;
    let failed = start(&db.pool, "f", json!({})).await;
    fail_for_good(&db.pool, &claim_one(&db.pool, worker).await, "x").await;

    let stamps = "select stamp from (
            select -1 as position, started_at, completed_at, failed_at, null::timestamptz as skipped_at
            from pgflow.runs where run_id = $1
            union all
            select d.step_index, s.started_at, s.completed_at, s.failed_at, s.skipped_at
            from pgflow.step_states s join pgflow.steps d using (flow_slug, step_slug) where s.run_id = $1
        ) s
        cross join lateral (values ('started', started_at), ('completed', completed_at), ('failed', failed_at), ('skipped', skipped_at))
            as x (stamp, at)
        where at is not null
        order by at, position desc";
    for (run_id, expected) in [
        // The run, `a`; `a`, `b`; `b`, `c`; `c`, the run.
        (
            completed,
            "started started completed started skipped started completed completed",
        ),
        (failed, "started started failed failed"),
    ] {
        let stamps: Vec<String> = sqlx::query_scalar(stamps)
            .bind(run_id)
            .fetch_all(&db.pool)
            .await
            .expect("stamps can be read");
        assert_eq!(stamps.join(" "), expected);
    }
    assert_invariants(&db.pool).await;
}
