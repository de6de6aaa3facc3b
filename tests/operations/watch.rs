//! `docs/operations.md`: each query finds what it is for, each statement does what the page says.

use serde_json::json;
use sqlx::postgres::PgRow;
use sqlx::{PgPool, Row};
use uuid::Uuid;

use super::page::{Block, blocks, the};
use super::{rows, run};
use crate::support::TestDb;
use crate::support::flows::{
    claim_one, complete, define, define_with_step_queues, fail, postpone, start, step, worker,
};
use crate::support::invariants::assert_invariants;
use crate::support::runs::{age, fail_for_good, requeue};

/// The page, and what has been run of it.
struct Page {
    pool: PgPool,
    blocks: Vec<Block>,
    done: usize,
}

impl Page {
    /// Runs the block that says this.
    async fn at(&mut self, what: &str) -> Vec<PgRow> {
        self.done += 1;
        rows(&self.pool, the(&self.blocks, what)).await
    }

    /// The one row that it returns.
    async fn one(&mut self, what: &str) -> PgRow {
        let mut rows = self.at(what).await;
        assert_eq!(rows.len(), 1, "{what}");
        rows.remove(0)
    }
}

/// Runs of flow `orders`, by what became of them.
struct Runs {
    completed: Uuid,
    recovered: Uuid,
    stalled: Uuid,
    overdue: Uuid,
    lost: Uuid,
}

/// A database that has seen everything that one watches for.
async fn eventful(pool: &PgPool) -> Runs {
    define(pool, "orders", &[step("price")]).await;
    define_with_step_queues(pool, "media", &[step("hash")]).await;
    let lost = worker(pool, "orders").await;
    let begin = async || {
        let run_id = start(pool, "orders", json!(1)).await;
        (run_id, claim_one(pool, lost).await)
    };

    let (completed, task) = begin().await;
    complete(pool, &task, json!(1)).await;
    let (_, task) = begin().await;
    assert_eq!(fail_for_good(pool, &task, "boom").await, "failed");
    let (recovered, _) = begin().await;
    age(pool, recovered, "price", 3600).await;
    assert_eq!(requeue(pool).await, 1);
    claim_one(pool, lost).await;
    let (stalled, _) = begin().await;
    for _ in 0..2 {
        age(pool, stalled, "price", 3600).await;
        assert_eq!(requeue(pool).await, 1);
        claim_one(pool, lost).await;
    }
    age(pool, stalled, "price", 3600).await;
    assert_eq!(requeue(pool).await, 0);
    let (overdue, _) = begin().await;
    age(pool, overdue, "price", 3600).await;
    let (_, task) = begin().await;
    postpone(pool, &task, "60", "too many requests")
        .await
        .expect("postponed");
    let (_, task) = begin().await;
    fail(pool, &task, "try again").await;
    start(pool, "media", json!(1)).await;
    run(
        pool,
        "update pgflow.workers set last_heartbeat_at = now() - interval '7 seconds';
         select pgflow.track_worker_function(f) from unnest(array['off', 'busy']) f;
         select pgflow.disable_worker_function('off', 'too dear');
         select pgflow.fence_worker_functions(array['busy'])",
    )
    .await;
    Runs {
        completed,
        recovered,
        stalled,
        overdue,
        lost,
    }
}

#[tokio::test]
async fn each_statement_finds_or_does_what_the_page_says() {
    let db = TestDb::new().await;
    let pool = &db.pool;
    let runs = eventful(pool).await;
    let mut page = Page {
        pool: pool.clone(),
        blocks: blocks("operations.md"),
        done: 0,
    };
    // The role of another page; roles belong to the whole server.
    let role = format!("{}_worker", db.name);
    for block in &mut page.blocks {
        block.sql = block.sql.replace("orders_worker", &role);
    }

    let running = page.at("count(*) as running").await;
    assert_eq!(running.len(), 2, "two flows have runs that run");
    let ended = page.at("p95_seconds").await;
    let statuses: Vec<String> = ended.iter().map(|row| row.get("status")).collect();
    assert_eq!(statuses, ["started", "completed", "failed", "started"]);

    let queues = page.at("as waiting_since").await;
    let covered: Vec<bool> = queues.iter().map(|row| row.get("is_covered")).collect();
    assert_eq!(covered, [false, false]);
    assert_eq!(
        queues
            .iter()
            .map(|row| row.get::<i64, _>("waiting_messages"))
            .sum::<i64>(),
        2,
        "a retry without a delay, and a task that nobody has claimed"
    );

    let lost = page.one("state = 'lost'").await;
    assert_eq!(lost.get::<Uuid, _>("worker_id"), runs.lost);
    assert_eq!(lost.get::<i64, _>("started_tasks"), 2);
    let off = page.at("where not enabled").await;
    let off: Vec<(String, Option<bool>)> = off
        .iter()
        .map(|row| (row.get("function_name"), row.get("recorded_enabled")))
        .collect();
    assert_eq!(
        off,
        [("off".to_owned(), None), ("busy".to_owned(), Some(true))]
    );

    // Rows that no process has registered have neither host nor process.
    for worker in page.at("w.host, w.pid").await {
        assert_eq!(worker.get::<Option<String>, _>("host"), None);
    }

    let overdue = page.one("+ 60)").await;
    assert_eq!(overdue.get::<Uuid, _>("run_id"), runs.overdue);
    let recovered = page.at("t.permanently_stalled_at desc").await;
    let recovered: Vec<(Uuid, i32)> = recovered
        .iter()
        .map(|row| (row.get("run_id"), row.get("requeued_count")))
        .collect();
    assert_eq!(recovered, [(runs.stalled, 2), (runs.recovered, 1)]);
    let failures = page.one("failed_percent").await;
    assert_eq!(
        (
            failures.get::<i64, _>("completed"),
            failures.get::<i64, _>("failed")
        ),
        (1, 2)
    );
    let retries = page.one("an_error").await;
    assert_eq!(retries.get::<String, _>("an_error"), "try again");
    let postponed = page.one("t.postponed_count > 0").await;
    assert_eq!(postponed.get::<String, _>("a_cause"), "too many requests");

    let tables = page.at("pg_stat_user_tables").await;
    let tables: Vec<String> = tables.iter().map(|row| row.get("relation")).collect();
    for table in ["pgflow.step_tasks", "pgmq.q_orders", "pgmq.a_media__hash"] {
        assert!(tables.iter().any(|found| found == table), "{tables:?}");
    }
    assert_ne!(page.at("pg_stat_activity").await.len(), 0);

    settings(&mut page, &runs, &role).await;
    assert_eq!(
        page.done,
        page.blocks.len(),
        "each block of the page was run"
    );
    assert_invariants(pool).await;
}

/// Runs the statements that change something.
async fn settings(page: &mut Page, runs: &Runs, role: &str) {
    let pool = page.pool.clone();
    let old = "update pgflow.runs set started_at = now() - interval '41 days', completed_at = now() - interval '40 days' where status = 'completed'";
    run(&pool, old).await;
    let pruned = page
        .one("select pgflow.prune_data_older_than(interval '30 days', 1000)")
        .await;
    assert_eq!(pruned.get::<i32, _>(0), 1);
    let left: Vec<Uuid> = sqlx::query_scalar("select run_id from pgflow.runs")
        .fetch_all(&pool)
        .await
        .unwrap();
    assert!(!left.contains(&runs.completed) && left.contains(&runs.overdue));

    // A stand-in for pg_cron, which runs what it is given.
    run(
        &pool,
        "create schema cron;
         create function cron.schedule(job_name text, schedule text, command text) returns bigint language plpgsql as $$
         begin
             execute command;
             return 1;
         end
         $$",
    )
    .await;
    page.one("cron.schedule('pgflow_prune'").await;
    page.one("setup_requeue_stalled_tasks_cron").await;

    let installed = page.one("from pgflow.installation").await;
    assert_eq!(installed.get::<String, _>("event_level"), "runs");
    assert!(installed.get::<bool, _>("wakeups"));
    page.at("update pgflow.installation").await;
    run(&pool, &format!("create role {role}")).await;
    page.at("synchronous_commit = off").await;
    let settings: Vec<String> = sqlx::query_scalar(
        "select unnest(setconfig) from pg_db_role_setting where setrole = to_regrole($1)",
    )
    .bind(role)
    .fetch_all(&pool)
    .await
    .unwrap();
    assert_eq!(settings, ["synchronous_commit=off", "jit=off"]);
}
