//! One worker for each step, in one process.

use std::{sync::Arc, time::Duration};

use pgflow::client::Client;
use pgflow::prelude::*;
use pgflow::startup::StartupError;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};

use crate::support::{TestDb, eventually, invariants::assert_invariants};
use crate::worker::{DEADLINE, probe::Probe, running_workers};

/// Not `Clone`.
struct Shop {
    probe: Arc<Probe>,
}

/// Three steps in a row, the middle one with many tasks.
struct Orders;

#[flow(input = u32, state = Shop, with_step_queues)]
impl Orders {
    #[step]
    async fn fetch(input: u32, state: &Shop) -> StepResult<Vec<u32>> {
        state.probe.note("fetch");
        Ok((0..input).collect())
    }

    #[step(map = fetch)]
    async fn pack(item: u32, state: &Shop) -> StepResult<u32> {
        state.probe.pass("pack").await;
        Ok(item)
    }

    #[step(depends_on = [pack])]
    async fn ship(pack: &[u32], state: &Shop) -> StepResult<usize> {
        state.probe.note("ship");
        Ok(pack.len())
    }
}

fn shop(probe: &Probe) -> Shop {
    Shop {
        probe: Arc::new(probe.clone()),
    }
}

#[tokio::test]
async fn all_steps_are_served_and_what_is_set_for_one_comes_first() {
    let database = TestDb::new().await;
    let probe = Probe::closed();
    let workers = StepWorker::<Orders>::all_with_state(shop(&probe))
        .step(Step::Pack, |worker| worker.concurrency(3))
        .step(Step::Ship, |worker| worker.function_name("shipping"))
        .concurrency(7)
        .poll_interval(Duration::from_millis(20))
        .start(&database.pool)
        .await
        .unwrap();
    let rows: Vec<(String, String, String, String)> = sqlx::query_as(
        "select flow_slug, step_slug, queue_name, function_name from pgflow.workers \
         where worker_id = any ($1) order by array_position($1, worker_id)",
    )
    .bind(workers.worker_ids())
    .fetch_all(&database.pool)
    .await
    .unwrap();
    let expected = [
        ("orders", "fetch", "orders__fetch", "orders__fetch"),
        ("orders", "pack", "orders__pack", "orders__pack"),
        ("orders", "ship", "orders__ship", "shipping"),
    ];
    let owned = |(a, b, c, d): (&str, &str, &str, &str)| {
        (a.to_owned(), b.to_owned(), c.to_owned(), d.to_owned())
    };
    assert_eq!(rows, expected.map(owned));

    let client = Client::new(database.pool.clone());
    let run = client.start::<Orders>(&20).await.unwrap();
    probe.until_count(4).await;
    assert_eq!(probe.seen(), ["fetch", "pack", "pack", "pack"]);
    probe.let_all_go();
    assert_eq!(run.wait().timeout(DEADLINE).await.unwrap().ship, 20);
    workers.stop().await.unwrap();
    assert_eq!(running_workers(&database.pool).await, 0);
    assert_invariants(&database.pool).await;
}

#[tokio::test]
async fn workers_of_one_process_need_no_poll_for_what_they_make_ready() {
    let database = TestDb::new().await;
    let workers = StepWorker::<Orders>::all_with_state(shop(&Probe::open()))
        .poll_interval(Duration::from_hours(1))
        .start(&database.pool)
        .await
        .unwrap();
    let client = Client::new(database.pool.clone());
    // All workers sleep before the second run at the latest.
    for _ in 0..2 {
        let run = client.start::<Orders>(&5).await.unwrap();
        assert_eq!(run.wait().timeout(DEADLINE).await.unwrap().ship, 5);
    }
    workers.stop().await.unwrap();
    assert_invariants(&database.pool).await;
}

#[tokio::test]
async fn wrong_options_of_any_step_are_found_at_once_and_before_anything_starts() {
    let database = TestDb::new().await;
    let error = StepWorker::<Orders>::all_with_state(shop(&Probe::open()))
        .drain_timeout(Duration::from_secs(3601))
        .step(Step::Pack, |worker| worker.concurrency(0))
        .start(&database.pool)
        .await
        .unwrap_err();
    let StartupError::InvalidOptions { problems } = error else {
        panic!("{error}");
    };
    let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
    assert_eq!(
        problems,
        [
            "`drain_timeout` of step `fetch` of flow `orders` is 3601s; expected at most 3600s",
            "`concurrency` of step `pack` of flow `orders` is 0 tasks at a time; expected 1 to 10000",
            "`drain_timeout` of step `pack` of flow `orders` is 3601s; expected at most 3600s",
            "`drain_timeout` of step `ship` of flow `orders` is 3601s; expected at most 3600s",
        ]
    );
    let workers: i64 = sqlx::query_scalar("select count(*) from pgflow.workers")
        .fetch_one(&database.pool)
        .await
        .unwrap();
    assert_eq!(workers, 0);
}

#[tokio::test]
async fn the_definition_is_compared_once_for_the_workers_of_all_steps() {
    let database = TestDb::new().await;
    let options: PgConnectOptions = database.url.parse().unwrap();
    let pool = PgPoolOptions::new()
        .max_connections(3)
        .connect_lazy_with(options.options([("track_functions", "pl")]));
    let workers = StepWorker::<Orders>::all_with_state(shop(&Probe::closed()))
        .start(&pool)
        .await
        .unwrap();
    assert_eq!(workers.worker_ids().len(), 3);
    workers.stop().await.unwrap();
    // Sessions report what they called when they end.
    pool.close().await;
    let calls = async |function: &str| -> Option<i64> {
        sqlx::query_scalar("select calls from pg_stat_user_functions where funcname = $1")
            .bind(function)
            .fetch_optional(&database.pool)
            .await
            .unwrap()
    };
    eventually(DEADLINE, "the calls are reported", async || {
        (calls("register_worker").await == Some(3)).then_some(())
    })
    .await;
    assert_eq!(calls("ensure_flow_compiled").await, Some(1));
}
