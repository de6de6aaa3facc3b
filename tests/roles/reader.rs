//! `pgflow_reader`.

use pgflow::client::Client;
use pgflow_runtime::inspect::{self, RunFilter};
use serde_json::{Value, json};
use sqlx::AssertSqlSafe;

use super::recipe_file::Recipe;
use super::{Installed, Orders, assert_may_not_call, assert_writes_nothing, callable, run, tables};
use crate::support::flows::{FUNCTION, claim_one, complete, define, start, step, worker};
use crate::support::invariants::assert_invariants;

#[tokio::test]
async fn a_member_reads_everything() {
    let installed = Installed::new().await;
    define(
        &installed.owner,
        "orders",
        &[
            step("list"),
            step("double").map().deps(&["list"]),
            step("sum").deps(&["double"]),
        ],
    )
    .await;
    let id = worker(&installed.owner, "orders").await;
    let run_id = start(&installed.owner, "orders", json!([1, 2])).await;
    let task = claim_one(&installed.owner, id).await;
    complete(&installed.owner, &task, json!([1, 2])).await;

    run(
        &installed.owner,
        "insert into pgflow.option_notices (flow_slug, differences) values ('orders', '{}')",
    )
    .await;
    let pool = installed.reader().await;
    for (table, _) in tables(&pool).await {
        let rows = format!("select count(*) from pgflow.{table}");
        let rows: i64 = sqlx::query_scalar(AssertSqlSafe(rows))
            .fetch_one(&pool)
            .await
            .expect("a table can be read");
        // Nothing is ever committed to the first, nothing is being deleted, and no handler blocks.
        let empty = ["late_wakeups", "flow_deletions", "overdue_attempts"];
        let is_empty = empty.contains(&table.as_str());
        assert_eq!(rows == 0, is_empty, "{table} would be readable anyhow");
    }
    let json: Value = sqlx::query_scalar("select pgflow.get_run_with_states($1)")
        .bind(run_id)
        .fetch_one(&pool)
        .await
        .expect("the run can be read");
    assert_eq!(json["steps"][0]["output"], json!([1, 2]));
    let json: Value = sqlx::query_scalar("select pgflow.explain_step($1, 'sum')")
        .bind(run_id)
        .fetch_one(&pool)
        .await
        .expect("the step can be explained");
    assert_eq!(json["message"], "It waits for double (started).");
    // For that it looks into the queue, which a reader may not.
    let json: Value = sqlx::query_scalar("select pgflow.explain_step($1, 'double')")
        .bind(run_id)
        .fetch_one(&pool)
        .await
        .expect("the step can be explained");
    assert_eq!(json["tasks"], json!({"queued": 2}));
    assert_ne!(json["visible_at"], Value::Null);
    let coverage = inspect::coverage(&pool, None).await;
    let coverage = coverage.expect("it is known who serves what");
    assert_eq!(coverage.len(), 1);
    assert_eq!(coverage[0].waiting_messages, Some(2));
    // What `pgflow workers list` shows.
    let workers: Vec<(String, String, i64)> = sqlx::query_as(
        "select f.function_name, s.state, s.started_tasks
         from pgflow.worker_functions f join pgflow.worker_status s using (function_name) join pgflow.live_workers using (worker_id)",
    )
    .fetch_all(&pool)
    .await
    .expect("workers can be read");
    assert_eq!(workers, [(FUNCTION.to_owned(), "running".to_owned(), 0)]);
    let is_valid: bool = sqlx::query_scalar("select pgflow.is_valid_slug('orders')")
        .fetch_one(&pool)
        .await
        .expect("slugs can be judged");
    assert!(is_valid);

    // What `pgflow runs` and `pgflow run` show.
    let runs = inspect::runs(&pool, &RunFilter::unfinished("orders")).await;
    assert_eq!(runs.expect("runs can be listed").len(), 1);
    let mut session = pool.acquire().await.expect("a session");
    let run = inspect::run(&mut session, run_id).await;
    let run = run.expect("the run can be read").expect("it is there");
    assert_eq!(run.steps.len(), 3);
    assert_invariants(&installed.owner).await;
}

#[tokio::test]
async fn a_member_changes_nothing() {
    let installed = Installed::new().await;
    define(&installed.owner, "orders", &[step("list")]).await;
    let pool = installed.reader().await;
    assert_eq!(
        callable(&pool).await,
        Recipe::read().functions_of("pgflow_reader")
    );
    assert_writes_nothing(&pool).await;
    assert_may_not_call(
        &pool,
        &[
            "start_flow('orders', '{}')",
            "start_flow_with_states('orders', '{}')",
            "claim_tasks(null, 1)",
            "complete_task(null, null, null, null)",
            "complete_tasks('{}', '{}', '{}', '{}', '{}')",
            "fail_task(null, null, null, null)",
            "release_tasks(null, '{}', '{}', '{}', '{}')",
            "requeue_stalled_tasks()",
            "ensure_flow_compiled('mine', '{}')",
            "register_worker(null, 'f', 'orders', null, 'orders', '{}')",
            "track_worker_function('f')",
            "prune_data_older_than('0')",
            "delete_flow_and_data('orders')",
            "worker_heartbeats('{}')",
            "lost_attempts('{}', '{}', '{}', '{}')",
            "fence_worker_functions('{orders}')",
            "unfence_worker_functions('{orders}')",
            "deprecate_workers('{orders}')",
            "disable_worker_function('orders')",
            "enable_worker_function('orders')",
            "ensure_workers()",
            "set_worker_function_url('orders', 'https://example.org')",
            "_wake_workers('{orders}')",
            "set_environment('local')",
        ],
    )
    .await;
    let error = Client::new(pool).start::<Orders>(&vec![1]).await;
    error.expect_err("a reader starts nothing");
    assert_invariants(&installed.owner).await;
}
