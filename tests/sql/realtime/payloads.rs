//! The payload of each event, key by key.

use serde_json::{Value, json};
use sqlx::postgres::PgPool;
use uuid::Uuid;

use super::install_realtime;
use crate::support::TestDb;
use crate::support::events::set_event_level;
use crate::support::flows::{Step, claim_one, complete, start, step};
use crate::support::invariants::assert_invariants;
use crate::support::runs::{claim_all, database_with, fail_for_good, of_step};

/// A flow whose events are all sent to the sink, and a worker of it.
async fn listened_to(steps: &[Step]) -> (TestDb, Uuid) {
    let (db, worker) = database_with(steps).await;
    install_realtime(&db.pool).await;
    set_event_level(&db.pool, "all").await;
    (db, worker)
}

/// The payloads of one event, in order. A stamp that is the one of the row reads "as stored".
async fn payloads(pool: &PgPool, event: &str) -> Vec<Value> {
    sqlx::query_scalar(
        "select m.payload || stamps.shown
         from realtime.messages m
         join pgflow.runs r on r.run_id = (m.payload ->> 'run_id')::uuid
         left join pgflow.step_states s on s.run_id = r.run_id and s.step_slug = m.payload ->> 'step_slug'
         cross join lateral (
             select jsonb_object_agg(
                 e.key,
                 case when e.value <> 'null' and e.value = case when s is null then to_jsonb(r) else to_jsonb(s) end -> e.key
                     then to_jsonb('as stored'::text) else e.value end
             ) as shown
             from jsonb_each(m.payload) e
             where e.key like '%\\_at'
         ) stamps
         where m.event = $1
         order by m.n",
    )
    .bind(event)
    .fetch_all(pool)
    .await
    .expect("what was sent can be read")
}

/// The only payload of an event.
async fn payload(pool: &PgPool, event: &str) -> Value {
    let mut found = payloads(pool, event).await;
    assert_eq!(found.len(), 1, "{event} is told once");
    found.remove(0)
}

/// A run's payload: every key, null unless given.
fn of_run(event_type: &str, run_id: Uuid, given: Value) -> Value {
    let keys = json!({
        "event_type": event_type, "run_id": run_id, "flow_slug": "f", "status": null, "input": null, "output": null,
        "error_message": null, "remaining_steps": null, "started_at": "as stored", "completed_at": null, "failed_at": null,
    });
    with(keys, given)
}

/// A step's payload: every key, null unless given.
fn of_one_step(event_type: &str, run_id: Uuid, step: &str, given: Value) -> Value {
    let keys = json!({
        "event_type": event_type, "run_id": run_id, "flow_slug": "f", "step_slug": step, "status": null, "output": null,
        "error_message": null, "skip_reason": null, "remaining_tasks": null, "remaining_deps": 0,
        "started_at": null, "completed_at": null, "failed_at": null, "skipped_at": null,
    });
    with(keys, given)
}

fn with(mut payload: Value, given: Value) -> Value {
    let Value::Object(given) = given else {
        panic!("{given} is no object");
    };
    payload.as_object_mut().expect("an object").extend(given);
    payload
}

#[tokio::test]
async fn a_run_that_completes() {
    let (db, worker) = listened_to(&[step("a"), step("m").map().deps(&["a"])]).await;
    let pool = &db.pool;
    let run_id = start(pool, "f", json!({"q": 1})).await;
    complete(pool, &claim_one(pool, worker).await, json!(["x", "y"])).await;
    let elements = claim_all(pool, worker).await;
    // Last one first: the output is the whole map's, in the order of the elements.
    complete(pool, &elements[1], json!("Y")).await;
    complete(pool, &elements[0], json!("X")).await;

    let started = json!({"status": "started", "input": {"q": 1}, "remaining_steps": 2});
    assert_eq!(
        payload(pool, "run:started").await,
        of_run("run:started", run_id, started)
    );
    for (step, tasks, output) in [("a", 1, json!(["x", "y"])), ("m", 2, json!(["X", "Y"]))] {
        let started =
            json!({"status": "started", "remaining_tasks": tasks, "started_at": "as stored"});
        assert_eq!(
            payload(pool, &format!("step:{step}:started")).await,
            of_one_step("step:started", run_id, step, started)
        );
        let completed = json!({
            "status": "completed", "remaining_tasks": 0, "output": output, "started_at": "as stored", "completed_at": "as stored",
        });
        assert_eq!(
            payload(pool, &format!("step:{step}:completed")).await,
            of_one_step("step:completed", run_id, step, completed)
        );
        let stored: Value =
            sqlx::query_scalar("select output from pgflow.step_states where step_slug = $1")
                .bind(step)
                .fetch_one(pool)
                .await
                .expect("the output is stored");
        assert_eq!(stored, output);
    }
    let completed = json!({
        "status": "completed", "remaining_steps": 0, "output": {"m": ["X", "Y"]}, "completed_at": "as stored",
    });
    assert_eq!(
        payload(pool, "run:completed").await,
        of_run("run:completed", run_id, completed)
    );
    assert_invariants(pool).await;
}

#[tokio::test]
async fn an_empty_map() {
    let (db, worker) = listened_to(&[step("a"), step("m").map().deps(&["a"])]).await;
    let run_id = start(&db.pool, "f", json!({})).await;
    complete(&db.pool, &claim_one(&db.pool, worker).await, json!([])).await;
    let completed = json!({
        "status": "completed", "remaining_tasks": 0, "output": [], "started_at": "as stored", "completed_at": "as stored",
    });
    let told = payload(&db.pool, "step:m:completed").await;
    assert_eq!(told, of_one_step("step:completed", run_id, "m", completed));
    assert_eq!(
        payloads(&db.pool, "step:m:started").await,
        [Value::Null; 0],
        "it never started"
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn steps_that_are_skipped() {
    let (db, worker) = listened_to(&[
        step("unmet").required(json!({"never": 1})),
        step("a").when_exhausted("skip-cascade"),
        step("cascaded").deps(&["a"]),
        step("other"),
    ])
    .await;
    let run_id = start(&db.pool, "f", json!({})).await;
    let claimed = claim_all(&db.pool, worker).await;
    fail_for_good(&db.pool, of_step(&claimed, "a"), "no luck").await;
    for (step, given) in [
        ("unmet", json!({"skip_reason": "condition_unmet"})),
        (
            "a",
            json!({"skip_reason": "handler_failed", "error_message": "no luck", "started_at": "as stored"}),
        ),
        ("cascaded", json!({"skip_reason": "dependency_skipped"})),
    ] {
        let skipped = with(
            json!({"status": "skipped", "skipped_at": "as stored"}),
            given,
        );
        assert_eq!(
            payload(&db.pool, &format!("step:{step}:skipped")).await,
            of_one_step("step:skipped", run_id, step, skipped)
        );
    }
    assert_invariants(&db.pool).await;
}

/// Expects a run to have been failed by a step, with this message in both events.
async fn expect_failure(
    pool: &PgPool,
    run_id: Uuid,
    step: &str,
    message: &str,
    remaining_tasks: Option<i32>,
    remaining_steps: i32,
) {
    let has_started = remaining_tasks.map(|_| "as stored");
    let failed = json!({
        "status": "failed", "error_message": message, "remaining_tasks": remaining_tasks, "started_at": has_started,
        "failed_at": "as stored",
    });
    assert_eq!(
        payload(pool, &format!("step:{step}:failed")).await,
        of_one_step("step:failed", run_id, step, failed)
    );
    let failed = json!({
        "status": "failed", "error_message": message, "remaining_steps": remaining_steps, "failed_at": "as stored",
    });
    assert_eq!(
        payload(pool, "run:failed").await,
        of_run("run:failed", run_id, failed)
    );
    assert_eq!(payloads(pool, "run:completed").await, [Value::Null; 0]);
    assert_invariants(pool).await;
}

#[tokio::test]
async fn a_run_whose_task_is_out_of_attempts() {
    let (db, worker) = listened_to(&[step("m").map(), step("after").deps(&["m"])]).await;
    let run_id = start(&db.pool, "f", json!([1, 2])).await;
    let element = claim_one(&db.pool, worker).await;
    fail_for_good(&db.pool, &element, "no luck").await;
    expect_failure(&db.pool, run_id, "m", "no luck", Some(2), 2).await;
}

#[tokio::test]
async fn a_run_whose_condition_is_not_met_at_its_start() {
    let (db, _) = listened_to(&[
        step("strict")
            .required(json!({"never": 1}))
            .when_unmet("fail"),
        step("other"),
    ])
    .await;
    let run_id = start(&db.pool, "f", json!({})).await;
    expect_failure(&db.pool, run_id, "strict", "Condition not met", None, 2).await;
    assert_eq!(
        payloads(&db.pool, "step:other:started").await,
        [Value::Null; 0]
    );
}

#[tokio::test]
async fn a_run_whose_step_returned_no_array_for_its_map() {
    let (db, worker) = listened_to(&[step("a"), step("m").map().deps(&["a"])]).await;
    let run_id = start(&db.pool, "f", json!({})).await;
    complete(&db.pool, &claim_one(&db.pool, worker).await, json!({})).await;
    let message = "[TYPE_VIOLATION] step \"m\" maps over step \"a\", which must return an array; it returned object";
    expect_failure(&db.pool, run_id, "a", message, Some(1), 2).await;
}
