//! The tasks that each worker gets, with a queue for each step.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::sql::stored::unchanged;
use crate::support::TestDb;
use crate::support::flows::{
    FUNCTION, Step, claim, complete, define_with_step_queues, start, step, step_worker,
};
use crate::support::invariants::assert_invariants;
use crate::support::rows::{raised, run};
use crate::support::{eventually, runs::outline};

/// Two roots that feed maps, and a step that joins them.
fn steps() -> Vec<Step> {
    vec![
        step("left"),
        step("right"),
        step("lefts").map().deps(&["left"]),
        step("rights").map().deps(&["right"]),
        step("join").deps(&["lefts", "rights"]),
    ]
}

const SLUGS: [&str; 5] = ["left", "right", "lefts", "rights", "join"];

fn output(step: &str) -> Value {
    match step {
        "left" => json!([1, 2, 3]),
        "right" => json!([1, 2, 3, 4]),
        _ => json!(step),
    }
}

#[tokio::test]
async fn a_worker_gets_the_tasks_of_its_step_and_never_another_ones() {
    let db = TestDb::new().await;
    for flow in ["orders", "twin"] {
        define_with_step_queues(&db.pool, flow, &steps()).await;
    }
    let mut mine = BTreeSet::new();
    for _ in 0..3 {
        mine.insert(start(&db.pool, "orders", json!({})).await);
        start(&db.pool, "twin", json!({})).await;
    }
    let mut workers = Vec::new();
    for slug in SLUGS {
        workers.push((slug, step_worker(&db.pool, "orders", slug).await));
    }
    let mut claimed: BTreeMap<&str, usize> = BTreeMap::new();
    // Twice the depth of the flow, so that each worker has also asked when other steps had tasks
    // and its own had none.
    for _ in 0..6 {
        let mut tasks = Vec::new();
        for (slug, worker) in &workers {
            for task in claim(&db.pool, *worker, 100).await {
                assert_eq!(
                    (task.step_slug.as_str(), mine.contains(&task.run_id)),
                    (*slug, true)
                );
                assert_eq!(task.queue_name, format!("orders__{slug}"));
                *claimed.entry(slug).or_default() += 1;
                tasks.push(task);
            }
        }
        for task in tasks {
            complete(&db.pool, &task, output(&task.step_slug)).await;
        }
    }
    let expected = [
        ("left", 3),
        ("right", 3),
        ("lefts", 9),
        ("rights", 12),
        ("join", 3),
    ];
    assert_eq!(claimed, BTreeMap::from(expected));
    for id in mine {
        assert_eq!(run(&db.pool, id).await.status, "completed");
    }
    assert_invariants(&db.pool).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_of_all_steps_at_once_carry_runs_to_their_end() {
    let db = TestDb::new().await;
    define_with_step_queues(&db.pool, "orders", &steps()).await;
    let mut ids = Vec::new();
    for _ in 0..10 {
        ids.push(start(&db.pool, "orders", json!({})).await);
    }
    let mut workers = JoinSet::new();
    for slug in SLUGS.into_iter().chain(SLUGS) {
        let worker = step_worker(&db.pool, "orders", slug).await;
        let pool = db.pool.clone();
        workers.spawn(async move {
            loop {
                for task in claim(&pool, worker, 3).await {
                    assert_eq!(task.step_slug, slug);
                    complete(&pool, &task, output(slug)).await;
                }
                tokio::task::yield_now().await;
            }
        });
    }
    for id in ids {
        let what = format!("run {id} completes");
        eventually(std::time::Duration::from_mins(1), what, async || {
            assert!(workers.try_join_next().is_none(), "a worker has ended");
            (run(&db.pool, id).await.status == "completed").then_some(())
        })
        .await;
        assert_eq!(
            outline(&db.pool, id).await,
            "run completed, left completed, right completed, lefts completed, rights completed, join completed"
        );
    }
    workers.shutdown().await;
    let attempts: Vec<i32> =
        sqlx::query_scalar("select distinct attempts_count from pgflow.step_tasks")
            .fetch_all(&db.pool)
            .await
            .expect("tasks can be read");
    assert_eq!(attempts, [1]);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_worker_is_registered_for_one_step_and_its_queue() {
    let db = TestDb::new().await;
    define_with_step_queues(&db.pool, "Orders", &[step("A"), step("b")]).await;
    step_worker(&db.pool, "Orders", "A").await;
    let register = async |step: Option<&str>, queue: &str| {
        sqlx::query("select pgflow.register_worker($1, $2, 'Orders', $3, $4, '{}')")
            .bind(Uuid::now_v7())
            .bind(FUNCTION)
            .bind(step)
            .bind(queue)
            .execute(&db.pool)
            .await
            .map(drop)
    };
    for (step, queue) in [
        (Some("A"), "orders__b"),
        (Some("A"), "Orders__A"),
        (Some("a"), "orders__a"),
        (Some("A"), "orders"),
        (Some("c"), "orders__c"),
        (None, "orders__a"),
        (None, "orders"),
    ] {
        let of_step = step
            .map(|step| format!(", step \"{step}\""))
            .unwrap_or_default();
        assert_eq!(
            raised(unchanged(&db.pool, register(step, queue)).await),
            format!("PF009: queue \"{queue}\" is no route of flow \"Orders\"{of_step}")
        );
    }
    register(Some("A"), "orders__a").await.expect("registered");
    assert_invariants(&db.pool).await;
}
