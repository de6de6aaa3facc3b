//! Each run of many gets what it would have got alone.

use serde_json::{Value, json};
use sqlx::postgres::PgPool;
use uuid::Uuid;

use super::start_many;
use crate::support::TestDb;
use crate::support::flows::{Step, define, define_with_step_queues, start, step};
use crate::support::invariants::assert_invariants;
use crate::support::rows::{count, messages, run, step_state, tasks};

/// All that is stored of a run, apart from what tells it from others: ids, times and places in
/// queues.
async fn without_identity(pool: &PgPool, run: Uuid) -> Value {
    sqlx::query_scalar(
        "select jsonb_build_object(
            'run', (select to_jsonb(r) - 'run_id' - 'started_at' - 'completed_at' - 'failed_at' from pgflow.runs r where r.run_id = $1),
            'states', (
                select jsonb_agg(
                    to_jsonb(s) - 'run_id' - 'created_at' - 'started_at' - 'completed_at' - 'failed_at' - 'skipped_at' order by s.step_slug
                )
                from pgflow.step_states s where s.run_id = $1
            ),
            'tasks', (
                select jsonb_agg(
                    to_jsonb(t) - 'run_id' - 'message_id' - 'queued_at' - 'completed_at' - 'failed_at' order by t.step_slug, t.task_index
                )
                from pgflow.step_tasks t where t.run_id = $1
            ),
            'messages', (
                select jsonb_agg(
                    q.message - 'run_id' || jsonb_build_object('delay', round(extract(epoch from q.vt - q.enqueued_at)))
                    order by q.message ->> 'step_slug', q.message ->> 'task_index'
                )
                from pgmq.q_orders q where q.message ->> 'run_id' = $1::text
            )
        )",
    )
    .bind(run)
    .fetch_one(pool)
    .await
    .expect("rows can be read")
}

/// Starts runs of these steps together, and each by itself; all that is stored of them must be the
/// same. Returns their statuses.
async fn together_as_alone(steps: &[Step], inputs: &[Value]) -> Vec<String> {
    let db = TestDb::new().await;
    define(&db.pool, "orders", steps).await;
    let together = start_many(&db.pool, "orders", inputs.to_vec()).await;
    let mut statuses = Vec::new();
    for (input, together) in inputs.iter().zip(together) {
        let alone = start(&db.pool, "orders", input.clone()).await;
        let stored = without_identity(&db.pool, together).await;
        assert_eq!(stored, without_identity(&db.pool, alone).await, "{input}");
        assert_eq!(stored["run"]["input"], *input);
        statuses.push(run(&db.pool, together).await.status);
    }
    assert_invariants(&db.pool).await;
    statuses
}

#[tokio::test]
async fn many_runs_over_lists_store_what_as_many_single_ones_do() {
    let steps = [
        step("each").map(),
        step("late").start_delay(600),
        step("mapped_again").deps(&["each"]).map(),
        step("never").required(json!({"no": "list has it"})),
        step("after_never").deps(&["never"]).map(),
        step("last").deps(&["mapped_again", "late"]),
    ];
    let inputs = [
        json!([1, 2, 3]),
        json!([]),
        json!([9, null, {"a": [1]}, [], "é"]),
        json!(vec![1; 100]),
        json!([]),
    ];
    let statuses = together_as_alone(&steps, &inputs).await;
    assert_eq!(statuses, ["started"; 5]);
}

#[tokio::test]
async fn many_runs_with_conditions_store_what_as_many_single_ones_do() {
    let steps = [
        step("always").start_delay(60),
        step("skipped").required(json!({"n": 1})),
        step("after_skipped").deps(&["skipped"]),
        step("cascade")
            .required(json!({"n": 2}))
            .when_unmet("skip-cascade"),
        step("after_cascade").deps(&["cascade", "always"]),
        step("strict")
            .forbidden(json!({"stop": true}))
            .when_unmet("fail"),
    ];
    let inputs = [
        json!({"n": 1}),
        json!({"n": 2, "stop": true}),
        json!({"n": 2, "stop": false}),
        json!(null),
        json!({"stop": true}),
        json!("n"),
    ];
    let statuses = together_as_alone(&steps, &inputs).await;
    assert_eq!(
        statuses,
        [
            "started", "failed", "started", "started", "failed", "started"
        ]
    );
}

#[tokio::test]
async fn a_root_map_is_as_large_as_the_input_of_its_own_run() {
    let db = TestDb::new().await;
    define_with_step_queues(&db.pool, "orders", &[step("one"), step("each").map()]).await;
    let sizes = [3, 0, 1, 200];
    let inputs = sizes.map(|size| json!((0..size).map(|n| json!([size, n])).collect::<Vec<_>>()));
    let runs = start_many(&db.pool, "orders", inputs).await;
    for (run, size) in runs.iter().zip(sizes) {
        assert_eq!(tasks(&db.pool, *run, "one").await.len(), 1);
        let state = step_state(&db.pool, *run, "each").await;
        assert_eq!(state.initial_tasks, Some(size));
        let inputs: Vec<Value> = sqlx::query_scalar(
            "select input from pgflow.step_tasks where run_id = $1 and step_slug = 'each' order by task_index",
        )
        .bind(run)
        .fetch_all(&db.pool)
        .await
        .expect("tasks can be read");
        let expected: Vec<Value> = (0..size).map(|n| json!([size, n])).collect();
        assert_eq!(inputs, expected);
    }
    assert_eq!(messages(&db.pool, "orders__one").await.len(), 4);
    assert_eq!(messages(&db.pool, "orders__each").await.len(), 204);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn maps_over_nothing_end_their_own_runs_only() {
    let db = TestDb::new().await;
    let steps = [
        step("a").map(),
        step("b").deps(&["a"]).map(),
        step("c").deps(&["b"]).map(),
    ];
    define(&db.pool, "orders", &steps).await;
    let inputs = [json!([]), json!([1]), json!([])];
    let runs = start_many(&db.pool, "orders", inputs).await;
    for (id, remaining) in runs.iter().zip([0, 3, 0]) {
        let found = run(&db.pool, *id).await;
        let (status, output) = match remaining {
            0 => ("completed", Some(json!({"c": []}))),
            _ => ("started", None),
        };
        assert_eq!(
            (found.status.as_str(), found.output, found.remaining_steps),
            (status, output, remaining)
        );
    }
    assert_eq!(count(&db.pool, "pgflow.step_tasks").await, 1);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_condition_of_a_root_decides_for_each_run_by_its_own_input() {
    let db = TestDb::new().await;
    let steps = [
        step("always"),
        step("vip").required(json!({"vip": true})),
        step("strict")
            .forbidden(json!({"banned": true}))
            .when_unmet("fail"),
    ];
    define(&db.pool, "orders", &steps).await;
    let inputs = [
        json!({"vip": true}),
        json!({"vip": false}),
        json!({"vip": true, "banned": true}),
        json!([]),
    ];
    let runs = start_many(&db.pool, "orders", inputs).await;
    for (id, status, vip, strict) in [
        (runs[0], "started", "started", "started"),
        (runs[1], "started", "skipped", "started"),
        (runs[2], "failed", "created", "failed"),
        (runs[3], "started", "skipped", "started"),
    ] {
        assert_eq!(run(&db.pool, id).await.status, status);
        assert_eq!(step_state(&db.pool, id, "strict").await.status, strict);
        if status != "failed" {
            assert_eq!(step_state(&db.pool, id, "vip").await.status, vip);
        }
    }
    // Two of each, and the one that is for those whom it is for; the failed run has none.
    assert_eq!(count(&db.pool, "pgflow.step_tasks").await, 7);
    assert_eq!(messages(&db.pool, "orders").await.len(), 7);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn runs_without_steps_are_complete_at_once() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[]).await;
    let inputs = [json!(null), json!({}), json!([1])];
    for id in start_many(&db.pool, "orders", inputs).await {
        let ended = run(&db.pool, id).await;
        let alone = start(&db.pool, "orders", json!(1)).await;
        assert_eq!(ended, run(&db.pool, alone).await);
        assert_eq!(ended.status, "completed");
    }
    let without_end: i64 = sqlx::query_scalar(
        "select count(*) from pgflow.runs where completed_at is null or completed_at < started_at",
    )
    .fetch_one(&db.pool)
    .await
    .expect("runs can be counted");
    assert_eq!(without_end, 0);
    assert_invariants(&db.pool).await;
}
