//! Connections that die silently while a call is under way: the server's machine lost its
//! power, or a firewall forgot them. No packet ever tells the worker.

use std::{sync::Arc, time::Duration};

use pgflow::client::Client;
use pgflow::prelude::*;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{AssertSqlSafe, PgPool};
use tokio::sync::Semaphore;

use crate::support::invariants::assert_invariants;
use crate::support::proxy::Proxy;
use crate::support::{TestDb, eventually};

const DEADLINE: Duration = Duration::from_secs(20);
/// Long enough for any sensible limit of a call, and for recovery after it.
const PATIENCE: Duration = Duration::from_mins(4);

#[derive(Debug, Clone)]
struct Gates {
    entered: Arc<Semaphore>,
    open: Arc<Semaphore>,
}

struct Patient;

#[flow(input = u32, state = Gates, timeout = "3s")]
impl Patient {
    #[step]
    async fn wait(input: u32, state: &Gates) -> StepResult<u32> {
        state.entered.add_permits(1);
        let _open = state.open.acquire().await?;
        Ok(input)
    }
}

async fn through(proxy: &Proxy, database: &TestDb) -> PgPool {
    let url = format!(
        "postgres://postgres@127.0.0.1:{}/{}?sslmode=disable",
        proxy.port(),
        database.name
    );
    // Idle connections are dead, too: the pool finds out one by one, and waits as long for each.
    let options = PgPoolOptions::new().acquire_timeout(Duration::from_secs(2));
    options.connect(&url).await.unwrap()
}

/// The connection on which a call of `function` is under way, held up by a lock of `table`, dies,
/// and all others of the worker with it.
async fn the_worker_goes_on_after_a_silent_death_during(function: &str, table: &str) {
    let database = TestDb::new().await;
    let options: PgConnectOptions = database.url.parse().unwrap();
    let socket = options.get_socket().expect("tests use a socket");
    let proxy = Proxy::start(&socket.join(format!(".s.PGSQL.{}", options.get_port()))).await;
    let pool = through(&proxy, &database).await;
    let gates = Gates {
        entered: Arc::new(Semaphore::new(0)),
        open: Arc::new(Semaphore::new(0)),
    };
    let worker = FlowWorker::<Patient>::with_state(gates.clone())
        .poll_interval(Duration::from_millis(20))
        .start(&pool)
        .await
        .unwrap();
    let client = Client::new(database.pool.clone());
    let first = client.start::<Patient>(&1).await.unwrap();
    gates.entered.acquire().await.unwrap().forget();

    let mut block = database.pool.begin().await.unwrap();
    let lock = format!("lock table {table} in access exclusive mode");
    sqlx::raw_sql(AssertSqlSafe(lock))
        .execute(&mut *block)
        .await
        .unwrap();
    gates.open.add_permits(1);
    eventually(DEADLINE, format!("{function} is held up"), async || {
        let is_held_up: bool = sqlx::query_scalar(
            "select exists (select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' \
             and query like '%' || $1 || '%' and pid <> pg_backend_pid())",
        )
        .bind(function)
        .fetch_one(&database.pool)
        .await
        .unwrap();
        is_held_up.then_some(())
    })
    .await;
    proxy.abandon();
    block.rollback().await.unwrap();

    let second = client.start::<Patient>(&2).await.unwrap();
    for run in [first, second] {
        run.wait().timeout(PATIENCE).await.unwrap();
    }
    worker.stop().await.unwrap();
    assert_invariants(&database.pool).await;
}

#[tokio::test]
async fn a_claim_whose_connection_dies_in_silence_is_made_again() {
    the_worker_goes_on_after_a_silent_death_during("claim_tasks", "pgflow.workers").await;
}

#[tokio::test]
async fn a_completion_whose_connection_dies_in_silence_is_made_again() {
    the_worker_goes_on_after_a_silent_death_during("complete_tasks", "pgflow.runs").await;
}
