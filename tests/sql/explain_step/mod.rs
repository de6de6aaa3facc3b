//! `explain_step`: one test for each reason that it gives. `waiting` has those of steps whose tasks
//! wait.

mod failed;
mod lost;
mod waiting;

use serde_json::{Value, json};
use sqlx::postgres::PgDatabaseError;
use sqlx::{AssertSqlSafe, PgPool};
use uuid::Uuid;

use crate::support::TestDb;
use crate::support::flows::{claim, claim_one, complete, define, drain, fail, start, step, worker};
use crate::support::invariants::assert_invariants;
use crate::support::runs::{age, claim_all, database_with, fail_for_good, of_step};

async fn try_explain(pool: &PgPool, run_id: Uuid, step: &str) -> sqlx::Result<Value> {
    sqlx::query_scalar("select pgflow.explain_step($1, $2)")
        .bind(run_id)
        .bind(step)
        .fetch_one(pool)
        .await
}

async fn explain(pool: &PgPool, run_id: Uuid, step: &str) -> Value {
    try_explain(pool, run_id, step)
        .await
        .expect("the step can be explained")
}

/// The reason and the message.
fn said(explained: &Value) -> (&str, &str) {
    let text = |key: &str| explained[key].as_str().expect("it is a text");
    (text("reason"), text("message"))
}

/// A timestamp of a step as messages write it.
async fn time(pool: &PgPool, run_id: Uuid, step: &str, column: &str) -> String {
    let query = format!(
        "select {column}::text from pgflow.step_states where run_id = $1 and step_slug = $2"
    );
    sqlx::query_scalar(AssertSqlSafe(query))
        .bind(run_id)
        .bind(step)
        .fetch_one(pool)
        .await
        .expect("the step has this timestamp")
}

/// Lets no worker miss its heartbeat, however slow the test is.
async fn keep_workers_alive(pool: &PgPool) {
    sqlx::query("update pgflow.workers set last_heartbeat_at = now() + interval '1 hour'")
        .execute(pool)
        .await
        .expect("workers can be changed");
}

#[tokio::test]
async fn a_completed_step() {
    let (db, worker) = database_with(&[step("a"), step("b").deps(&["a"])]).await;
    let run_id = start(&db.pool, "f", json!({})).await;
    let task = claim_one(&db.pool, worker).await;
    complete(&db.pool, &task, json!(1)).await;
    keep_workers_alive(&db.pool).await;
    let explained = explain(&db.pool, run_id, "a").await;
    let at = time(&db.pool, run_id, "a", "completed_at").await;
    assert_eq!(
        said(&explained),
        ("completed", &*format!("It completed at {at}."))
    );
    assert_eq!(
        explained,
        json!({
            "run_id": run_id, "flow_slug": "f", "step_slug": "a", "run_status": "started", "status": "completed",
            "reason": "completed", "message": format!("It completed at {at}."), "skip_reason": null, "error_message": null,
            "waiting_for": [], "tasks": {"completed": 1}, "running": [], "visible_at": null,
            "queue_name": "f", "live_workers": 1, "disabled_reason": null,
        })
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_skipped_step_says_for_which_of_the_three_reasons() {
    let (db, worker) = database_with(&[
        step("unmet").required(json!({"never": 1})),
        step("fragile").when_exhausted("skip-cascade"),
        step("after").deps(&["fragile"]),
        step("goes_on"),
    ])
    .await;
    let run_id = start(&db.pool, "f", json!({})).await;
    let tasks = claim_all(&db.pool, worker).await;
    fail_for_good(&db.pool, of_step(&tasks, "fragile"), "boom").await;
    for (step, skip_reason, why) in [
        ("unmet", "condition_unmet", "its condition was not met"),
        (
            "fragile",
            "handler_failed",
            "its task failed for good at attempt 1 of 3",
        ),
        (
            "after",
            "dependency_skipped",
            "a step that it depends on was skipped",
        ),
    ] {
        let explained = explain(&db.pool, run_id, step).await;
        let at = time(&db.pool, run_id, step, "skipped_at").await;
        let message = format!("It was skipped at {at}: {why}.");
        assert_eq!(said(&explained), ("skipped", &*message));
        assert_eq!(explained["skip_reason"], skip_reason);
    }
    let fragile = explain(&db.pool, run_id, "fragile").await;
    assert_eq!(fragile["error_message"], "boom");
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_step_that_waits_names_the_dependencies_that_have_not_ended() {
    let (db, worker) = database_with(&[
        step("z"),
        step("skipped").required(json!({"never": 1})),
        step("done"),
        step("b").deps(&["z"]),
        step("last").deps(&["b", "done", "skipped", "z"]),
    ])
    .await;
    let run_id = start(&db.pool, "f", json!({})).await;
    let tasks = claim_all(&db.pool, worker).await;
    complete(&db.pool, of_step(&tasks, "done"), json!(1)).await;
    let explained = explain(&db.pool, run_id, "last").await;
    assert_eq!(
        said(&explained),
        (
            "waiting_for_dependencies",
            "It waits for z (started), b (created)."
        ),
        "in the order of the definition"
    );
    assert_eq!(
        explained["waiting_for"],
        json!([{"step_slug": "z", "status": "started"}, {"step_slug": "b", "status": "created"}])
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn rows_changed_by_hand_are_called_so() {
    let (db, worker) = database_with(&[step("a"), step("b").deps(&["a"]), step("c")]).await;
    let run_id = start(&db.pool, "f", json!({})).await;
    let tasks = claim_all(&db.pool, worker).await;
    complete(&db.pool, of_step(&tasks, "a"), json!(1)).await;
    // Contradictions that no function makes.
    sqlx::raw_sql(
        "update pgflow.step_states set status = 'created', started_at = null, remaining_tasks = null where step_slug = 'b';
         update pgflow.step_tasks set status = 'completed', completed_at = now() + interval '1 hour' where step_slug = 'c'",
    )
    .execute(&db.pool)
    .await
    .expect("rows can be changed by hand");
    let explained = explain(&db.pool, run_id, "b").await;
    assert_eq!(
        said(&explained),
        (
            "not_advanced",
            "All that it depends on has ended, and yet it was not started: its rows were changed by hand, or this is a fault of pgflow."
        )
    );
    assert_eq!(explained["waiting_for"], json!([]));
    assert_eq!(
        said(&explain(&db.pool, run_id, "c").await),
        (
            "not_advanced",
            "None of its tasks waits or runs, and yet it has not ended: its rows were changed by hand, or this is a fault of pgflow."
        )
    );
}

#[tokio::test]
async fn a_running_step_lists_ten_of_its_running_tasks_the_longest_first() {
    let (db, worker) = database_with(&[step("each").map().timeout(120)]).await;
    let run_id = start(&db.pool, "f", json!(vec![1; 14])).await;
    let alone = claim_one(&db.pool, worker).await;
    assert_eq!(
        said(&explain(&db.pool, run_id, "each").await),
        ("running", "1 of its 14 tasks is running.")
    );
    claim(&db.pool, worker, 11).await;
    // The last ones have run longest.
    sqlx::query(
        "update pgflow.step_tasks set queued_at = t.queued_at - interval '1 hour', started_at = t.queued_at - make_interval(secs => t.task_index)
         from pgflow.step_tasks t where t = step_tasks and t.status = 'started'",
    )
    .execute(&db.pool)
    .await
    .expect("rows can be aged");
    let explained = explain(&db.pool, run_id, "each").await;
    assert_eq!(
        said(&explained),
        ("running", "12 of its 14 tasks are running.")
    );
    assert_eq!(explained["tasks"], json!({"started": 12, "queued": 2}));
    let running = explained["running"].as_array().expect("a list");
    let indexes: Vec<_> = running.iter().map(|task| &task["task_index"]).collect();
    assert_eq!(indexes, [11, 10, 9, 8, 7, 6, 5, 4, 3, 2]);
    assert_eq!(running[0]["attempt"], 1);
    assert_eq!(running[0]["worker_id"], json!(worker));
    let is_its_deadline: bool = sqlx::query_scalar(
        "select ($1 ->> 'overdue_at')::timestamptz - ($1 ->> 'started_at')::timestamptz = interval '150 seconds'
            and ($1 ->> 'started_at')::timestamptz = (select started_at from pgflow.step_tasks where task_index = 11)",
    )
    .bind(&running[0])
    .fetch_one(&db.pool)
    .await
    .expect("timestamps can be read");
    assert!(is_its_deadline, "{}", running[0]);

    assert_eq!(running[0].get("build"), None);
    sqlx::query("update pgflow.workers set build = '1.0.0'")
        .execute(&db.pool)
        .await
        .expect("the worker can be changed");
    let of_build = explain(&db.pool, run_id, "each").await;
    assert_eq!(of_build["running"][0]["build"], "1.0.0");

    complete(&db.pool, &alone, json!(1)).await;
    let explained = explain(&db.pool, run_id, "each").await;
    assert_eq!(
        said(&explained),
        ("running", "11 of its 14 tasks are running.")
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn the_one_task_of_a_step_is_not_counted() {
    let (db, worker) = database_with(&[step("a")]).await;
    let run_id = start(&db.pool, "f", json!({})).await;
    claim_one(&db.pool, worker).await;
    assert_eq!(
        said(&explain(&db.pool, run_id, "a").await),
        ("running", "Its task is running.")
    );
    age(&db.pool, run_id, "a", 89).await;
    assert_eq!(said(&explain(&db.pool, run_id, "a").await).0, "running");
    age(&db.pool, run_id, "a", 2).await;
    let explained = explain(&db.pool, run_id, "a").await;
    assert_eq!(
        said(&explained),
        (
            "stalled",
            "Its task is past its time: its worker died, or does not answer. \
             Recovery deals with that, every 5 seconds while a worker runs."
        )
    );
    assert_eq!(explained["running"].as_array().map(Vec::len), Some(1));
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_step_is_stalled_when_all_that_runs_is_past_its_time() {
    let (db, worker) = database_with(&[step("each").map()]).await;
    let run_id = start(&db.pool, "f", json!([1, 2, 3])).await;
    claim_one(&db.pool, worker).await;
    age(&db.pool, run_id, "each", 100).await;
    assert_eq!(
        said(&explain(&db.pool, run_id, "each").await),
        (
            "stalled",
            "1 of its 3 tasks is past its time: its worker died, or does not answer. \
             Recovery deals with that, every 5 seconds while a worker runs."
        )
    );
    claim_one(&db.pool, worker).await;
    assert_eq!(
        said(&explain(&db.pool, run_id, "each").await),
        ("running", "2 of its 3 tasks are running.")
    );
    age(&db.pool, run_id, "each", 100).await;
    assert_eq!(
        said(&explain(&db.pool, run_id, "each").await),
        (
            "stalled",
            "2 of its 3 tasks are past their time: their workers died, or do not answer. \
             Recovery deals with that, every 5 seconds while a worker runs."
        )
    );
    assert_invariants(&db.pool).await;
}

/// The error's code, message and hint.
async fn refused(pool: &PgPool, run_id: Uuid, step: &str) -> (String, String, String) {
    let error = try_explain(pool, run_id, step).await;
    let error = error.expect_err("there is nothing to explain");
    let error = error.as_database_error().expect("Postgres raised it");
    let error = error.downcast_ref::<PgDatabaseError>();
    (
        error.code().to_owned(),
        error.message().to_owned(),
        error.hint().expect("it has a hint").to_owned(),
    )
}

#[tokio::test]
async fn an_unknown_run_or_step_is_refused() {
    let (db, _worker) = database_with(&[step("fetch"), step("pack")]).await;
    define(&db.pool, "empty", &[]).await;
    let run_id = start(&db.pool, "f", json!({})).await;
    let empty = start(&db.pool, "empty", json!({})).await;
    let (code, message, hint) = refused(&db.pool, Uuid::nil(), "fetch").await;
    assert_eq!(code, "PF002");
    assert_eq!(message, format!("there is no run {}", Uuid::nil()));
    assert_eq!(hint, "It may have been deleted.");
    let (code, message, hint) = refused(&db.pool, run_id, "ship").await;
    assert_eq!(code, "PF003");
    assert_eq!(
        message,
        format!("flow \"f\" has no step \"ship\" in run {run_id}")
    );
    assert_eq!(hint, "Its steps are fetch, pack.");
    let (code, _, hint) = refused(&db.pool, empty, "fetch").await;
    assert_eq!((&*code, &*hint), ("PF003", "It has no steps."));
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn what_flows_work_on_is_not_told() {
    const SECRET: &str = "hunter2";
    let db = TestDb::new().await;
    define(
        &db.pool,
        "f",
        &[
            step("a"),
            step("each").map().deps(&["a"]),
            step("last").deps(&["each"]),
        ],
    )
    .await;
    let run_id = start(&db.pool, "f", json!({"password": SECRET})).await;
    let worker = worker(&db.pool, "f").await;
    let mut told = Vec::new();
    let mut tell = async || {
        for step in ["a", "each", "last"] {
            told.push(explain(&db.pool, run_id, step).await.to_string());
        }
    };
    tell().await;
    // Bodies hold no input; whoever adds something to one must not find it here either.
    sqlx::query("update pgmq.q_f set message = message || jsonb_build_object('note', $1::text)")
        .bind(SECRET)
        .execute(&db.pool)
        .await
        .expect("a body can be changed");
    tell().await;
    let task = claim_one(&db.pool, worker).await;
    tell().await;
    fail(&db.pool, &task, "again").await;
    let task = claim_one(&db.pool, worker).await;
    complete(&db.pool, &task, json!([SECRET, SECRET])).await;
    tell().await;
    claim_one(&db.pool, worker).await;
    tell().await;
    age(&db.pool, run_id, "each", 100).await;
    tell().await;
    sqlx::query("select pgflow.requeue_stalled_tasks()")
        .execute(&db.pool)
        .await
        .expect("tasks can be recovered");
    drain(&db.pool, worker, |_| json!(SECRET)).await;
    tell().await;
    assert_eq!(told.len(), 21);
    for told in told {
        assert!(!told.contains(SECRET), "{told}");
    }
    assert_invariants(&db.pool).await;
}
