//! `docs/rollout.md`, from its first block of SQL to its last.

use serde_json::json;
use sqlx::{PgPool, Row};
use uuid::Uuid;

use super::page::{blocks, the};
use super::{rows, run};
use crate::support::TestDb;
use crate::support::flows::{define, define_with_step_queues, start, step};
use crate::support::invariants::assert_invariants;

/// A database with the flows of the page, each with workers.
async fn database() -> TestDb {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("price")]).await;
    let steps = [step("hash"), step("sniff")];
    define_with_step_queues(&db.pool, "media_ingest", &steps).await;
    run(
        &db.pool,
        "select pgflow.track_worker_function(f) from unnest(array['orders', 'media_ingest__hash', 'media_ingest__sniff']) f",
    )
    .await;
    workers(&db.pool).await;
    db
}

/// Starts one worker of each function.
async fn workers(pool: &PgPool) {
    run(
        pool,
        "select pgflow.register_worker(gen_random_uuid(), 'orders', 'orders', null, 'orders', null);
         select pgflow.register_worker(gen_random_uuid(), 'media_ingest__' || s, 'media_ingest', s, 'media_ingest__' || s, null)
         from unnest(array['hash', 'sniff']) s",
    )
    .await;
}

async fn stop_workers(pool: &PgPool) {
    run(
        pool,
        "select pgflow.mark_worker_stopped(worker_id) from pgflow.workers where stopped_at is null",
    )
    .await;
}

async fn states(pool: &PgPool) -> Vec<(String, bool, bool)> {
    sqlx::query_as(
        "select function_name, enabled, fenced_at is not null from pgflow.worker_functions order by function_name",
    )
    .fetch_all(pool)
    .await
    .unwrap()
}

fn state(name: &str, enabled: bool, fenced: bool) -> (String, bool, bool) {
    (name.to_owned(), enabled, fenced)
}

#[tokio::test]
async fn each_statement_does_what_the_page_says() {
    let db = database().await;
    let pool = &db.pool;
    let blocks = blocks("rollout.md");
    let block = |what: &str| the(&blocks, what).clone();
    let mut done = 0;
    let mut at = async |what: &str| {
        done += 1;
        rows(pool, &block(what)).await
    };

    // One queue.
    let fenced = at("fence_worker_functions(array['orders'], 'release 42')").await;
    assert_eq!(fenced.len(), 1);
    assert!(fenced[0].get::<bool, _>("recorded_enabled"));
    assert!(states(pool).await.contains(&state("orders", false, true)));
    let forgotten = at("where fenced_at is not null").await;
    assert_eq!(forgotten.len(), 1);
    let drain = "state in ('running', 'draining')";
    let live = "function_name in ('orders') and deprecated_at is null";
    let undrained = rows(pool, &block(drain)).await;
    assert_eq!(undrained.len(), 1);
    assert_eq!(undrained[0].get::<String, _>("state"), "draining");
    assert!(rows(pool, &block(live)).await.is_empty());
    at("select pgflow.requeue_stalled_tasks()").await;
    stop_workers(pool).await;
    assert!(at(drain).await.is_empty());
    let restored = at("unfence_worker_functions(array['orders'])").await;
    assert!(restored[0].get::<bool, _>("enabled"));
    workers(pool).await;
    assert_eq!(at(live).await.len(), 1);

    // A queue for each step.
    let set = at("select distinct w.function_name").await;
    let set: Vec<String> = set.iter().map(|row| row.get(0)).collect();
    assert_eq!(set, ["media_ingest__hash", "media_ingest__sniff"]);
    let names = "array['media_ingest__hash', 'media_ingest__sniff']";
    assert_eq!(
        at(&format!("pgflow.fence_worker_functions({names}"))
            .await
            .len(),
        2
    );
    let uncovered = "from pgflow.coverage";
    assert_eq!(rows(pool, &block(uncovered)).await.len(), 2);
    let restored = at(&format!("unfence_worker_functions({names}")).await;
    assert!(restored.iter().all(|row| row.get::<bool, _>("enabled")));
    workers(pool).await;
    assert!(at(uncovered).await.is_empty());

    at("set debounce = interval '20 seconds'").await;

    // A version of its own.
    let run_id = start(pool, "orders", json!(1)).await;
    let old = at("where flow_slug = 'orders' and status = 'started'").await;
    assert_eq!(old.len(), 1);
    assert_eq!(old[0].get::<Uuid, _>("run_id"), run_id);
    let disabled = at("disable_worker_function('orders', 'replaced by orders_v2')").await;
    assert!(!disabled[0].get::<bool, _>("enabled"));
    assert_ne!(
        at("deprecate_workers(array['orders'], 'replaced by orders_v2')")
            .await
            .len(),
        0
    );
    at("create table orders_v1_runs").await;
    at("delete_flow_and_data('orders')").await;
    let kept: Vec<Uuid> = sqlx::query_scalar("select run_id from orders_v1_runs")
        .fetch_all(pool)
        .await
        .unwrap();
    assert_eq!(kept, [run_id]);
    assert_eq!(done, blocks.len(), "each block of the page was run");
    assert_eq!(
        states(pool).await,
        [
            state("media_ingest__hash", true, false),
            state("media_ingest__sniff", true, false),
            state("orders", false, false)
        ]
    );
    assert_invariants(pool).await;
}
