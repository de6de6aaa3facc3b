//! Local databases: a changed definition drains the flow's workers, then takes the place of the old
//! one.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use sqlx::postgres::PgPool;
use uuid::Uuid;

use super::{definition, ensure_in, queues, run_sql, verified};
use crate::sql::stored::{stored, unchanged};
use crate::support::TestDb;
use crate::support::flows::{
    FUNCTION, Step, claim, claim_one, complete, define_with_step_queues, drain, start, step,
    step_worker, worker,
};
use crate::support::invariants::assert_invariants;
use crate::support::rows::{count, raised, run};

fn old() -> Vec<Step> {
    vec![step("a"), step("b")]
}

fn new() -> Vec<Step> {
    vec![step("a"), step("c").deps(&["a"]).map()]
}

/// A local database with the old definition and two runs.
async fn local(mode: &str) -> TestDb {
    let db = TestDb::new().await;
    run_sql(&db.pool, "select pgflow.set_environment('local')").await;
    ensure_in(&db.pool, mode, &old()).await.expect("compiled");
    for _ in 0..2 {
        start(&db.pool, "orders", json!({})).await;
    }
    db
}

async fn ask(pool: &PgPool, mode: &str, steps: &[Step]) -> Value {
    ensure_in(pool, mode, steps).await.expect("an answer")
}

/// The answer about a new definition of flow `orders` with two steps, the second of them another
/// one.
fn changed(status: &str, workers: &Value) -> Value {
    json!({
        "status": status, "mismatch_kind": "shape", "options_differ": [], "workers": workers,
        "differences": ["step 1: \"c\" in the code, \"b\" in the database"],
    })
}

/// All that is stored, without the rows of workers.
async fn stored_but_workers(pool: &PgPool) -> BTreeSet<String> {
    let mut stored = stored(pool).await;
    stored.retain(|line| !line.starts_with("pgflow.workers {"));
    stored
}

async fn deprecated(pool: &PgPool) -> Vec<(Uuid, Option<String>)> {
    sqlx::query_as("select worker_id, deprecated_at::text from pgflow.workers order by started_at")
        .fetch_all(pool)
        .await
        .expect("workers can be read")
}

async fn heartbeat_was(pool: &PgPool, worker: Uuid, ago: &str) {
    run_sql(
        pool,
        format!("update pgflow.workers set last_heartbeat_at = clock_timestamp() - interval '{ago}' where worker_id = '{worker}'"),
    )
    .await;
}

async fn stop(pool: &PgPool, worker: Uuid) {
    run_sql(
        pool,
        format!("select pgflow.mark_worker_stopped('{worker}')"),
    )
    .await;
}

/// A worker as the answer `draining` names it.
async fn named(pool: &PgPool, worker: Uuid, step: Option<&str>, started_tasks: i32) -> Value {
    let heartbeat: Value = sqlx::query_scalar(
        "select to_jsonb(last_heartbeat_at) from pgflow.workers where worker_id = $1",
    )
    .bind(worker)
    .fetch_one(pool)
    .await
    .expect("the worker is registered");
    json!({
        "worker_id": worker, "function_name": FUNCTION, "step_slug": step, "last_heartbeat_at": heartbeat,
        "started_tasks": started_tasks,
    })
}

#[tokio::test]
async fn live_workers_are_told_to_stop_and_named_and_nothing_is_deleted() {
    let db = local("step").await;
    let busy = step_worker(&db.pool, "orders", "a").await;
    let idle = step_worker(&db.pool, "orders", "b").await;
    let dead = step_worker(&db.pool, "orders", "b").await;
    let stopped = step_worker(&db.pool, "orders", "b").await;
    define_with_step_queues(&db.pool, "other", &[step("a")]).await;
    let other = step_worker(&db.pool, "other", "a").await;
    assert_eq!(claim(&db.pool, busy, 10).await.len(), 2);
    heartbeat_was(&db.pool, idle, "5 seconds").await;
    heartbeat_was(&db.pool, dead, "6 seconds").await;
    stop(&db.pool, stopped).await;

    let before = stored_but_workers(&db.pool).await;
    let alive = json!([
        named(&db.pool, busy, Some("a"), 2).await,
        named(&db.pool, idle, Some("b"), 0).await,
    ]);
    assert_eq!(
        ask(&db.pool, "step", &new()).await,
        changed("draining", &alive)
    );
    let first = deprecated(&db.pool).await;
    let told: Vec<Uuid> = first
        .iter()
        .filter_map(|(id, at)| at.as_ref().map(|_| *id))
        .collect();
    assert_eq!(told, [busy, idle, dead]);
    assert!(first.contains(&(other, None)));
    assert_eq!(stored_but_workers(&db.pool).await, before);

    // Asked again while they live.
    let again = unchanged(&db.pool, ensure_in(&db.pool, "step", &new())).await;
    let again = again.expect("an answer");
    assert_eq!(again["status"], "draining");
    assert_eq!(again["workers"][0]["worker_id"], json!(busy));
    assert_eq!(deprecated(&db.pool).await, first, "stamped once");
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_draining_worker_gets_nothing_new_and_may_finish_what_it_has() {
    let db = local("step").await;
    let worker = step_worker(&db.pool, "orders", "a").await;
    let task = claim_one(&db.pool, worker).await;
    assert_eq!(ask(&db.pool, "step", &new()).await["status"], "draining");
    assert!(claim(&db.pool, worker, 10).await.is_empty());
    let is_deprecated: bool = sqlx::query_scalar("select pgflow.worker_heartbeat($1)")
        .bind(worker)
        .fetch_one(&db.pool)
        .await
        .expect("it lives");
    assert!(is_deprecated);
    assert_eq!(complete(&db.pool, &task, json!(1)).await, "completed");
    let answer = ask(&db.pool, "step", &new()).await;
    assert_eq!(answer["workers"][0]["started_tasks"], 0);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn once_all_have_stopped_the_new_definition_takes_the_place_of_the_old_one() {
    let db = local("step").await;
    let [first, second] = [
        step_worker(&db.pool, "orders", "a").await,
        step_worker(&db.pool, "orders", "b").await,
    ];
    let task = claim_one(&db.pool, first).await;
    assert_eq!(ask(&db.pool, "step", &new()).await["status"], "draining");
    stop(&db.pool, first).await;
    let answer = ask(&db.pool, "step", &new()).await;
    let rest = json!([named(&db.pool, second, Some("b"), 0).await]);
    assert_eq!(answer, changed("draining", &rest));
    stop(&db.pool, second).await;
    assert_eq!(
        ask(&db.pool, "step", &new()).await,
        changed("recompiled", &json!([]))
    );

    assert_eq!(queues(&db.pool).await, ["orders__a", "orders__c"]);
    for table in [
        "pgflow.runs",
        "pgflow.step_states",
        "pgflow.step_tasks",
        "pgmq.q_orders__a",
        "pgmq.a_orders__a",
    ] {
        assert_eq!(count(&db.pool, table).await, 0, "{table}");
    }
    let fresh = TestDb::new().await;
    ensure_in(&fresh.pool, "step", &new())
        .await
        .expect("compiled");
    assert_eq!(definition(&db.pool).await, definition(&fresh.pool).await);
    assert_eq!(
        unchanged(&db.pool, ensure_in(&db.pool, "step", &new()))
            .await
            .expect("an answer"),
        verified()
    );

    // What the old worker still reports is about a run that is gone.
    let late = sqlx::query("select pgflow.complete_task($1, 'a', 0, '1')")
        .bind(task.run_id)
        .execute(&db.pool)
        .await;
    assert_eq!(
        raised(late),
        format!("PF003: there is no task \"a\" [0] in run {}", task.run_id)
    );
    let id = start(&db.pool, "orders", json!({})).await;
    let [a, c] = [
        step_worker(&db.pool, "orders", "a").await,
        step_worker(&db.pool, "orders", "c").await,
    ];
    assert_eq!(drain(&db.pool, a, |_| json!([1, 2])).await, 1);
    assert_eq!(drain(&db.pool, c, |task| task.input.clone()).await, 2);
    assert_eq!(run(&db.pool, id).await.output, Some(json!({"c": [1, 2]})));
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn dead_workers_hold_nothing_up_whatever_they_had_started() {
    for mode in ["step", "flow"] {
        let db = local(mode).await;
        let dead = match mode {
            "step" => step_worker(&db.pool, "orders", "a").await,
            _ => worker(&db.pool, "orders").await,
        };
        assert!(!claim(&db.pool, dead, 10).await.is_empty());
        heartbeat_was(&db.pool, dead, "6 seconds").await;
        assert_eq!(
            ask(&db.pool, mode, &new()).await,
            changed("recompiled", &json!([]))
        );
        // Should it only have been slow: it is asked to stop, and gets no task of the new
        // definition.
        start(&db.pool, "orders", json!({})).await;
        assert!(claim(&db.pool, dead, 10).await.is_empty());
        assert_invariants(&db.pool).await;
    }
}

#[tokio::test]
async fn an_equal_definition_is_verified_and_no_worker_is_told_to_stop() {
    let db = local("step").await;
    step_worker(&db.pool, "orders", "a").await;
    let answer = unchanged(&db.pool, ensure_in(&db.pool, "step", &old())).await;
    assert_eq!(answer.expect("an answer"), verified());
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn another_mode_recompiles_with_the_queues_of_that_mode() {
    for (before, after, flags, expected) in [
        (
            "flow",
            "step",
            "with_step_queues: yes in the code, no in the database",
            vec!["orders__a", "orders__b"],
        ),
        (
            "step",
            "flow",
            "with_step_queues: no in the code, yes in the database",
            vec!["orders"],
        ),
    ] {
        let db = local(before).await;
        let answer = ask(&db.pool, after, &old()).await;
        assert_eq!(
            (&answer["status"], &answer["mismatch_kind"]),
            (&json!("recompiled"), &json!("routing"))
        );
        assert_eq!(answer["differences"][0], flags);
        assert_eq!(queues(&db.pool).await, expected);
        assert_eq!(definition(&db.pool).await["flows"][0]["queue_mode"], after);
        assert_eq!(count(&db.pool, "pgflow.runs").await, 0);
        start(&db.pool, "orders", json!({})).await;
        let routed: i64 = sqlx::query_scalar(
            "select count(*) from pgflow.step_tasks t join pgflow.steps s using (step_slug, queue_name)",
        )
        .fetch_one(&db.pool)
        .await
        .expect("tasks can be read");
        assert_eq!(routed, 2);
        assert_eq!(
            unchanged(&db.pool, ensure_in(&db.pool, after, &old()))
                .await
                .expect("an answer"),
            verified()
        );
        assert_invariants(&db.pool).await;
    }
}

#[tokio::test]
async fn a_new_definition_that_can_not_be_stored_leaves_the_old_one_as_it_was() {
    for mode in ["step", "flow"] {
        let db = local(mode).await;
        for (steps, message) in [
            (
                vec![step("a").deps(&["c"]), step("c")],
                "PF004: step \"a\" depends on steps that flow \"orders\" does not have: c",
            ),
            (
                vec![step("a"), step("c").timeout(0)],
                "PF004: step c: timeout is 0 seconds; it must be at least 1",
            ),
            (
                vec![step("a"), step("c").map().required(json!({}))],
                "PF004: map step \"c\" runs over the flow's input, which is a list; a condition is an object, so it could never hold",
            ),
            (
                vec![step("a"), step("A")],
                "PF004: step \"A\" differs from step \"a\" only in case",
            ),
        ] {
            assert_eq!(
                raised(unchanged(&db.pool, ensure_in(&db.pool, mode, &steps)).await),
                message
            );
        }
        assert_invariants(&db.pool).await;
    }
}

#[tokio::test]
async fn a_new_definition_whose_queues_collide_leaves_the_old_one_as_it_was() {
    // A foreign queue; a queue of the flow itself that was taken off the list, so that it was not
    // deleted with it.
    for (prepare, message) in [
        (
            "select pgmq.create('orders__c')",
            "a queue \"orders__c\" exists, and no flow owns it",
        ),
        (
            "delete from pgmq.meta where queue_name = 'orders__a'",
            "a table pgmq.\"q_orders__a\" exists, though pgmq.meta lists no such queue",
        ),
    ] {
        let db = local("step").await;
        run_sql(&db.pool, prepare).await;
        assert_eq!(
            raised(unchanged(&db.pool, ensure_in(&db.pool, "step", &new())).await),
            format!("PF006: flow \"orders\": {message}")
        );
    }
}

#[tokio::test]
async fn a_flow_whose_queue_somebody_dropped_can_be_recompiled() {
    let db = local("step").await;
    run_sql(&db.pool, "select pgmq.drop_queue('orders__b')").await;
    assert_eq!(ask(&db.pool, "step", &new()).await["status"], "recompiled");
    assert_eq!(queues(&db.pool).await, ["orders__a", "orders__c"]);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn other_flows_keep_all_that_they_have() {
    let db = local("step").await;
    define_with_step_queues(&db.pool, "other", &old()).await;
    let id = start(&db.pool, "other", json!({})).await;
    let worker = step_worker(&db.pool, "other", "a").await;
    claim_one(&db.pool, worker).await;
    let of_other = async || -> Vec<String> {
        let all = stored(&db.pool).await.into_iter();
        all.filter(|line| line.contains("other") || line.contains(&id.to_string()))
            .collect()
    };
    let before = of_other().await;
    assert!(before.len() > 10);
    assert_eq!(ask(&db.pool, "step", &new()).await["status"], "recompiled");
    assert_eq!(of_other().await, before);
    assert_invariants(&db.pool).await;
}
