//! Conditions: when a step runs, and what an unmet one does. How skips spread is in `skips`.

mod patterns;

use serde_json::{Value, json};

use crate::support::flows::{claim, claim_one, complete, drain, fail, start, step};
use crate::support::invariants::assert_invariants;
use crate::support::rows::{archived, count, messages, run, step_state, task};
use crate::support::runs::{
    Item, claim_all, complete_batch, database_with, of_step, outline, task_statuses,
};

#[tokio::test]
async fn a_dependents_condition_looks_at_outputs_only() {
    let (db, worker) = database_with(&[
        step("a"),
        step("b"),
        step("met")
            .deps(&["a", "b"])
            .required(json!({"a": {"ok": true}, "b": null})),
        step("of_flow")
            .deps(&["a"])
            .required(json!({"plan": "pro"})),
        step("objects").deps(&["b"]).required(json!({"b": {}})),
        step("no_objects").deps(&["b"]).forbidden(json!({"b": {}})),
    ])
    .await;
    let run_id = start(&db.pool, "f", json!({"plan": "pro"})).await;
    for task in claim_all(&db.pool, worker).await {
        let output = match task.step_slug.as_str() {
            "a" => json!({"ok": true, "more": 1}),
            _ => Value::Null,
        };
        complete(&db.pool, &task, output).await;
    }
    assert_eq!(
        outline(&db.pool, run_id).await,
        "run started, a completed, b completed, met started, of_flow skipped: condition_unmet, \
         objects skipped: condition_unmet, no_objects started"
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn of_two_opposite_conditions_exactly_one_runs() {
    let pro = json!({"plan": "pro"});
    let (db, worker) = database_with(&[
        step("pro").required(pro.clone()),
        step("other").forbidden(pro.clone()),
        step("join").deps(&["pro", "other"]),
    ])
    .await;
    for (input, ran) in [
        (pro, "pro"),
        (json!({"plan": "free"}), "other"),
        (json!(3), "other"),
    ] {
        let run_id = start(&db.pool, "f", input).await;
        drain(&db.pool, worker, |task| match task.step_slug.as_str() {
            "join" => task.input.clone(),
            step => json!(step),
        })
        .await;
        assert_eq!(
            run(&db.pool, run_id).await.output,
            Some(json!({"join": {ran: ran}}))
        );
    }
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn an_unmet_condition_skips_by_default_and_its_dependents_run_without_it() {
    let (db, worker) = database_with(&[
        step("a").required(json!({"never": 1})),
        step("b").deps(&["a"]),
    ])
    .await;
    let run_id = start(&db.pool, "f", json!({})).await;
    assert_eq!(
        outline(&db.pool, run_id).await,
        "run started, a skipped: condition_unmet, b started"
    );
    let state = step_state(&db.pool, run_id, "a").await;
    assert_eq!((state.remaining_tasks, state.error_message), (None, None));
    assert_eq!(
        task_statuses(&db.pool, run_id, "a").await,
        "",
        "no task was made"
    );
    assert_eq!(run(&db.pool, run_id).await.remaining_steps, 1);
    assert_eq!(claim_one(&db.pool, worker).await.input, json!({}));
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn an_unmet_condition_may_skip_all_that_depends_on_it() {
    let (db, worker) = database_with(&[
        step("a")
            .required(json!({"never": 1}))
            .when_unmet("skip-cascade"),
        step("b").deps(&["a"]),
        step("c").map().deps(&["b"]),
        step("other"),
    ])
    .await;
    let run_id = start(&db.pool, "f", json!({})).await;
    assert_eq!(
        outline(&db.pool, run_id).await,
        "run started, a skipped: condition_unmet, b skipped: dependency_skipped, \
         c skipped: dependency_skipped, other started"
    );
    assert_eq!(run(&db.pool, run_id).await.remaining_steps, 1);
    drain(&db.pool, worker, |_| json!(1)).await;
    assert_eq!(
        run(&db.pool, run_id).await.output,
        Some(json!({"other": 1}))
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn an_unmet_condition_may_fail_the_run_at_its_start() {
    let (db, _) = database_with(&[
        step("a").required(json!({"never": 1})).when_unmet("fail"),
        step("b"),
        step("c").deps(&["b"]),
    ])
    .await;
    let run_id = start(&db.pool, "f", json!({})).await;
    assert_eq!(
        outline(&db.pool, run_id).await,
        "run failed, a failed, b created, c created"
    );
    let error = Some("Condition not met".to_owned());
    assert_eq!(run(&db.pool, run_id).await.error_message, error);
    assert_eq!(step_state(&db.pool, run_id, "a").await.error_message, error);
    assert_eq!(count(&db.pool, "pgflow.step_tasks").await, 0);
    assert_eq!(messages(&db.pool, "f").await, []);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn an_unmet_condition_that_fails_the_run_cancels_what_runs_beside_it() {
    let (db, worker) = database_with(&[
        step("a"),
        step("running"),
        step("waiting").start_delay(3600),
        step("strict")
            .deps(&["a"])
            .required(json!({"a": 1}))
            .when_unmet("fail"),
        step("sibling").deps(&["a"]),
    ])
    .await;
    let run_id = start(&db.pool, "f", json!({})).await;
    let claimed = claim_all(&db.pool, worker).await;
    assert_eq!(
        complete(&db.pool, of_step(&claimed, "a"), json!(2)).await,
        "completed"
    );
    assert_eq!(
        outline(&db.pool, run_id).await,
        "run failed, a completed, running started, waiting started, strict failed, sibling created"
    );
    for step in ["running", "waiting"] {
        assert_eq!(task_statuses(&db.pool, run_id, step).await, "cancelled");
    }
    assert_eq!(messages(&db.pool, "f").await, []);
    assert_eq!(archived(&db.pool, "f").await.len(), 3);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_condition_that_fails_beats_every_skip_and_the_first_of_several_is_to_blame() {
    let never = json!({"never": 1});
    let (db, _) = database_with(&[
        step("skips").required(never.clone()),
        step("cascades")
            .required(never.clone())
            .when_unmet("skip-cascade"),
        step("z_fails").required(never.clone()).when_unmet("fail"),
        step("a_fails_too")
            .required(never.clone())
            .when_unmet("fail"),
        step("after").deps(&["cascades"]),
    ])
    .await;
    let run_id = start(&db.pool, "f", json!({})).await;
    assert_eq!(
        outline(&db.pool, run_id).await,
        "run failed, skips created, cascades created, z_fails failed, a_fails_too created, after created"
    );
    assert_eq!(run(&db.pool, run_id).await.remaining_steps, 5);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn one_runs_unmet_condition_leaves_the_other_runs_of_a_batch_alone() {
    let (db, worker) = database_with(&[
        step("a"),
        step("strict")
            .deps(&["a"])
            .required(json!({"a": 1}))
            .when_unmet("fail"),
        step("skips").deps(&["a"]).required(json!({"a": 2})),
    ])
    .await;
    let first = start(&db.pool, "f", json!({})).await;
    let second = start(&db.pool, "f", json!({})).await;
    let items: Vec<_> = claim_all(&db.pool, worker)
        .await
        .iter()
        .map(|t| Item::of(t, json!(if t.run_id == first { 3 } else { 1 })))
        .collect();
    complete_batch(&db.pool, &items).await;
    assert_eq!(
        outline(&db.pool, first).await,
        "run failed, a completed, strict failed, skips created"
    );
    assert_eq!(
        outline(&db.pool, second).await,
        "run started, a completed, strict started, skips skipped: condition_unmet"
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_condition_behind_an_empty_map_is_evaluated() {
    let steps = |mode| {
        [
            step("m").map(),
            step("m2").map().deps(&["m"]),
            step("guarded")
                .deps(&["m2"])
                .required(json!({"m2": [1]}))
                .when_unmet(mode),
            step("met").deps(&["m2"]).required(json!({"m2": []})),
        ]
    };
    let (db, _) = database_with(&steps("skip")).await;
    let run_id = start(&db.pool, "f", json!([])).await;
    assert_eq!(
        outline(&db.pool, run_id).await,
        "run started, m completed, m2 completed, guarded skipped: condition_unmet, met started"
    );
    assert_invariants(&db.pool).await;

    let (db, _) = database_with(&steps("fail")).await;
    let run_id = start(&db.pool, "f", json!([])).await;
    assert_eq!(
        outline(&db.pool, run_id).await,
        "run failed, m completed, m2 completed, guarded failed, met created"
    );
    assert_eq!(count(&db.pool, "pgflow.step_tasks").await, 0);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn the_condition_of_an_empty_map_goes_before_its_emptiness() {
    let (db, worker) = database_with(&[
        step("source"),
        step("m")
            .map()
            .deps(&["source"])
            .forbidden(json!({"source": []})),
        step("after").map().deps(&["m"]),
    ])
    .await;
    let run_id = start(&db.pool, "f", json!({})).await;
    complete(&db.pool, &claim_one(&db.pool, worker).await, json!([])).await;
    assert_eq!(
        outline(&db.pool, run_id).await,
        "run completed, source completed, m skipped: condition_unmet, after completed"
    );
    assert_eq!(
        run(&db.pool, run_id).await.output,
        Some(json!({"after": []}))
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_condition_is_not_evaluated_again_on_a_retry() {
    let (db, worker) =
        database_with(&[step("a"), step("b").deps(&["a"]).required(json!({"a": 1}))]).await;
    let run_id = start(&db.pool, "f", json!({})).await;
    complete(&db.pool, &claim_one(&db.pool, worker).await, json!(1)).await;
    // Nobody changes a pattern of a live flow; if somebody does, what has started is decided.
    sqlx::query(
        "update pgflow.steps set required_input_pattern = '{\"a\": 2}' where step_slug = 'b'",
    )
    .execute(&db.pool)
    .await
    .expect("the pattern can be changed");
    fail(&db.pool, &claim_one(&db.pool, worker).await, "again").await;
    let again = claim_one(&db.pool, worker).await;
    assert_eq!((again.step_slug.as_str(), again.attempt), ("b", 2));
    complete(&db.pool, &again, json!(1)).await;
    assert_eq!(run(&db.pool, run_id).await.status, "completed");
    assert_eq!(task(&db.pool, run_id, "b").await.attempts_count, 2);
    assert_eq!(claim(&db.pool, worker, 1).await, []);
    assert_invariants(&db.pool).await;
}
