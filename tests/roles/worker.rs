//! `pgflow_worker`.

use pgflow::client::{Client, StepStatus};
use pgflow::worker::FlowWorker;
use serde_json::json;
use sqlx::PgPool;
use tokio::task::JoinSet;

use super::{
    DEADLINE, Installed, Orders, Step, assert_may_not_call, assert_writes_nothing, eventually,
};
use crate::support::flows::{
    FUNCTION, claim, claim_one, define, define_with_step_queues, fail, start, step, step_worker,
};
use crate::support::invariants::assert_invariants;
use crate::support::operations::{Hints, heartbeats};
use crate::support::runs::{Item, age, complete_batch, outline, requeue};

async fn start_worker(pool: &PgPool) -> pgflow::worker::WorkerHandle {
    let worker = FlowWorker::<Orders>::new().poll_interval(std::time::Duration::from_millis(20));
    worker.start(pool).await.expect("the worker starts")
}

#[tokio::test]
async fn a_member_runs_workers_and_starts_runs() {
    let installed = Installed::new().await;
    let pool = installed.worker().await;
    let is_defined = "select exists (select from pgflow.flows)";
    let is_defined: bool = sqlx::query_scalar(is_defined)
        .fetch_one(&pool)
        .await
        .expect("flows can be read");
    assert!(!is_defined, "the worker is to store the definition itself");

    let worker = start_worker(&pool).await;
    let run = Client::new(pool.clone())
        .start::<Orders>(&vec![1, 2, 3])
        .await
        .expect("a run can be started");
    let output = run.wait().timeout(DEADLINE).await.expect("the run ends");
    assert_eq!(output.sum, (3, 12));
    let routes = pgflow::inspect::coverage(&pool, None).await;
    assert!(routes.expect("coverage can be read")[0].is_covered);
    let snapshot = run.snapshot().await.expect("the run can be read");
    let list = snapshot.step(Step::List).expect("the step is there");
    assert_eq!(list.status, StepStatus::Completed);
    let id = worker.worker_id();
    worker.stop().await.expect("the worker stops");

    let (attempts, tasks, is_stopped): (i32, i64, bool) = sqlx::query_as(
        "select (select attempts_count from pgflow.step_tasks where step_slug = 'list'),
            (select count(*) from pgflow.step_tasks where step_slug = 'double' and status = 'completed'),
            (select stopped_at is not null from pgflow.workers where worker_id = $1)",
    )
    .bind(id)
    .fetch_one(&pool)
    .await
    .expect("tables can be read");
    assert_eq!((attempts, tasks, is_stopped), (2, 3, true));
    assert_invariants(&installed.owner).await;
}

#[tokio::test]
async fn what_a_worker_does_in_need_is_allowed_too() {
    let installed = Installed::new().await;
    define(
        &installed.owner,
        "f",
        &[step("a").max_attempts(9), step("b")],
    )
    .await;
    let pool = installed.worker().await;
    let worker = crate::support::flows::worker(&pool, "f").await;
    // Whoever may log in may listen; what is heard is that there is work.
    let mut hints = Hints::listen(&pool).await;
    let run_id = start(&pool, "f", json!({})).await;
    assert_eq!(hints.queues(&pool).await, ["f"]);

    let tasks = claim(&pool, worker, 1).await;
    assert_eq!(fail(&pool, &tasks[0], "again").await, "queued");
    let tasks = claim(&pool, worker, 2).await;
    let released: i32 = sqlx::query_scalar(
        "select pgflow.release_tasks($1, array[$2], array[$3], array[0], array[$4])",
    )
    .bind(worker)
    .bind(run_id)
    .bind(&tasks[0].step_slug)
    .bind(tasks[0].attempt)
    .fetch_one(&pool)
    .await
    .expect("tasks can be given back");
    assert_eq!(released, 1);
    let told = heartbeats(&pool, &[worker]).await;
    assert_eq!(told.expect("alive"), [(worker, false, None)]);
    let lost: Vec<i32> =
        sqlx::query_scalar("select pgflow.lost_attempts(array[$1, $1], $2, '{0,0}', $3)")
            .bind(run_id)
            .bind([&tasks[0].step_slug, &tasks[1].step_slug])
            .bind([tasks[0].attempt, tasks[1].attempt])
            .fetch_all(&pool)
            .await
            .expect("attempts can be looked for");
    assert_eq!(lost, [1], "the one that was given back");
    age(&installed.owner, run_id, &tasks[1].step_slug, 1000).await;
    assert_eq!(requeue(&pool).await, 1);

    // Work that it can't do disables its function, a row that it could not write.
    sqlx::query("select pgmq.send('f', '{}')")
        .execute(&installed.owner)
        .await
        .expect("the owner can send");
    crate::support::flows::raw_claim(&pool, worker, 9).await;
    let enabled: bool =
        sqlx::query_scalar("select enabled from pgflow.worker_functions where function_name = $1")
            .bind(FUNCTION)
            .fetch_one(&pool)
            .await
            .expect("functions can be read");
    assert!(!enabled);
    sqlx::query("delete from pgmq.q_f where message = '{}'")
        .execute(&installed.owner)
        .await
        .expect("the owner can delete");
    assert_invariants(&installed.owner).await;
}

#[tokio::test]
async fn a_member_stores_and_serves_a_flow_with_step_queues() {
    let installed = Installed::new().await;
    let pool = installed.worker().await;
    define_with_step_queues(&pool, "f", &[step("a"), step("b").deps(&["a"])]).await;
    let run_id = start(&pool, "f", json!({})).await;
    for step in ["a", "b"] {
        let worker = step_worker(&pool, "f", step).await;
        let task = claim_one(&pool, worker).await;
        assert_eq!(
            complete_batch(&pool, &[Item::of(&task, json!(1))]).await,
            ["completed"]
        );
    }
    assert_eq!(
        outline(&pool, run_id).await,
        "run completed, a completed, b completed"
    );
    assert_invariants(&installed.owner).await;
}

#[tokio::test]
async fn members_serve_the_same_flow_together() {
    let installed = Installed::new().await;
    let first = installed.worker().await;
    let second = installed.role("second", "grant pgflow_worker to {}").await;
    // The first one's login makes the queue, and may go.
    let maker = start_worker(&first).await;
    let workers = [start_worker(&first).await, start_worker(&second).await];
    maker.stop().await.expect("the worker stops");

    let mut runs = JoinSet::new();
    for n in 1..=20 {
        let pool = if n % 2 == 0 { &first } else { &second };
        let client = Client::new(pool.clone());
        runs.spawn(async move {
            let run = client.start::<Orders>(&vec![n; 5]).await?;
            let output = run.wait().timeout(DEADLINE).await?;
            anyhow::Ok(output.sum == (5, 10 * n))
        });
    }
    for right in runs.join_all().await {
        assert!(right.expect("the run completes"));
    }
    // More, until both have had some.
    let client = Client::new(first.clone());
    eventually(DEADLINE, "both workers had tasks", async || {
        let run = client.start::<Orders>(&vec![1; 20]).await.expect("a run");
        run.wait().timeout(DEADLINE).await.expect("it completes");
        let workers: i64 =
            sqlx::query_scalar("select count(distinct last_worker_id) from pgflow.step_tasks")
                .fetch_one(&first)
                .await
                .expect("tasks can be read");
        (workers >= 2).then_some(())
    })
    .await;
    for worker in workers {
        worker.stop().await.expect("the worker stops");
    }
    assert_invariants(&installed.owner).await;
}

#[tokio::test]
async fn a_member_writes_no_table_and_does_nothing_that_is_the_owners() {
    let installed = Installed::new().await;
    let pool = installed.worker().await;
    let worker = start_worker(&pool).await;
    worker.stop().await.expect("the worker stops");
    assert_writes_nothing(&pool).await;
    assert_may_not_call(
        &pool,
        &[
            "prune_data_older_than('0')",
            "delete_flow_and_data('orders')",
            "fence_worker_functions('{orders}')",
            "unfence_worker_functions('{orders}')",
            "deprecate_workers('{orders}')",
            "disable_worker_function('orders')",
            "enable_worker_function('orders')",
            "ensure_workers()",
            "set_worker_function_url('orders', 'https://example.org')",
            "_wake_workers('{orders}')",
            "_disable_function('orders', 'no')",
            "_deprecate_workers('{orders}', null, 'no')",
            "_assert_functions_known('{orders}')",
            "set_environment('local')",
            "setup_requeue_stalled_tasks_cron()",
            "create_flow('mine')",
            "add_step('orders', 'mine')",
            "complete_task(null, null, null, null)",
            "start_tasks('orders', '{1}', null, 'orders')",
            "set_vt_batch('orders', '{1}', '{0}')",
            "_fail_run(null, 'list', 0, 'no')",
            "_archive_messages('{orders}', '{1}')",
        ],
    )
    .await;
}
