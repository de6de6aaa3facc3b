//! Starts runs all the time, through the same bad network as the workers.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use pgflow::client::{Client, ClientError};
use sqlx::{PgPool, postgres::PgPoolOptions};
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep},
};
use uuid::Uuid;

use super::Mode;
use super::flows::{Order, one_queue::OneQueue, step_queues::StepQueues};

const PAUSE: Duration = Duration::from_millis(20);
const PATIENCE: Duration = Duration::from_mins(2);

/// Runs that were started, each with its input.
pub(crate) type Orders = Vec<(Uuid, Order)>;

#[derive(Debug)]
pub(crate) struct Producer {
    stop: Arc<AtomicBool>,
    orders: JoinHandle<(Orders, u64)>,
}

impl Producer {
    /// Keeps up to `most` runs open.
    pub(crate) fn start(mode: Mode, url: &str, seed: u64, most: i64) -> Self {
        let pool = PgPoolOptions::new().connect_lazy(url).expect("a valid URL");
        let stop = Arc::new(AtomicBool::new(false));
        let orders = tokio::spawn(produce(mode, pool, seed, most, Arc::clone(&stop)));
        Self { stop, orders }
    }

    /// Every run that was started, and how many calls were made again to start them.
    pub(crate) async fn stop(self) -> (Orders, u64) {
        self.stop.store(true, Ordering::Relaxed);
        self.orders.await.expect("the producer starts its runs")
    }
}

async fn produce(
    mode: Mode,
    pool: PgPool,
    seed: u64,
    most: i64,
    stop: Arc<AtomicBool>,
) -> (Orders, u64) {
    let mut rng = fastrand::Rng::with_seed(seed);
    let client = Client::new(pool.clone());
    let (mut orders, mut repeats) = (Orders::new(), 0);
    while !stop.load(Ordering::Relaxed) {
        let open: sqlx::Result<i64> =
            sqlx::query_scalar("select count(*) from pgflow.runs where status = 'started'")
                .fetch_one(&pool)
                .await;
        if open.is_ok_and(|open| open < most) {
            let (run_id, order) = (Uuid::now_v7(), Order::nth(orders.len(), &mut rng));
            repeats += insist(mode, &client, run_id, &order).await;
            orders.push((run_id, order));
        } else {
            sleep(PAUSE).await;
        }
    }
    (orders, repeats)
}

/// Starts the run, in as many calls as it takes; returns how many did not succeed, or did without
/// saying so.
async fn insist(mode: Mode, client: &Client, run_id: Uuid, order: &Order) -> u64 {
    let deadline = Instant::now() + PATIENCE;
    let mut repeats = 0;
    while let Err(error) = start(mode, client, run_id, order).await {
        assert!(
            Instant::now() < deadline,
            "run {run_id} can't be started: {error}"
        );
        repeats += 1;
        sleep(PAUSE).await;
    }
    repeats
}

async fn start(
    mode: Mode,
    client: &Client,
    run_id: Uuid,
    order: &Order,
) -> Result<(), ClientError> {
    match mode {
        Mode::Flow => client
            .start_with_id::<OneQueue>(run_id, order)
            .await
            .map(drop),
        Mode::Steps => client
            .start_with_id::<StepQueues>(run_id, order)
            .await
            .map(drop),
    }
}
