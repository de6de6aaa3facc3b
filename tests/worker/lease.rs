//! `.abandon_after`: attempts end before others may repeat them.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use pgflow::client::Client;
use pgflow::prelude::*;
use pgflow::startup::StartupError;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};

use super::{DEADLINE, run_sql, worker};
use crate::support::{TestDb, eventually, invariants::assert_invariants, proxy::Proxy};

const AFTER: Duration = Duration::from_secs(6);

/// The running attempts, whatever the database shows.
#[derive(Debug, Clone, Default)]
struct Registry {
    attempts: Arc<Mutex<Vec<Attempt>>>,
}

#[derive(Debug, Clone, Copy)]
struct Attempt {
    number: i32,
    began: Instant,
    ended: Option<Instant>,
}

struct Running<'a> {
    registry: &'a Registry,
    place: usize,
}

impl Registry {
    fn enter(&self, number: i32) -> Running<'_> {
        let mut attempts = self.attempts.lock().unwrap();
        attempts.push(Attempt {
            number,
            began: Instant::now(),
            ended: None,
        });
        Running {
            registry: self,
            place: attempts.len() - 1,
        }
    }

    fn all(&self) -> Vec<Attempt> {
        self.attempts.lock().unwrap().clone()
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.registry.attempts.lock().unwrap()[self.place].ended = Some(Instant::now());
    }
}

struct Sole;

#[flow(input = (), state = Registry, base_delay = "1s")]
impl Sole {
    #[step]
    async fn only(state: &Registry, ctx: &StepContext) -> StepResult<i32> {
        let _running = state.enter(ctx.attempt());
        if ctx.attempt() == 1 {
            std::future::pending::<()>().await;
        }
        Ok(ctx.attempt())
    }
}

#[tokio::test]
async fn an_attempt_of_a_worker_that_is_cut_off_ends_in_time_and_never_overlaps_the_next() {
    let database = TestDb::new().await;
    let options: PgConnectOptions = database.url.parse().unwrap();
    let socket = options.get_socket().expect("the test server has one");
    let proxy = Proxy::start(&socket.join(format!(".s.PGSQL.{}", options.get_port()))).await;
    let url = format!(
        "postgres://postgres@127.0.0.1:{}/{}?sslmode=disable",
        proxy.port(),
        database.name
    );
    let pool = PgPoolOptions::new().max_connections(4);
    let pool = pool.connect(&url).await.unwrap();
    let registry = Registry::default();
    let cut_off = worker::<Sole>(registry.clone())
        .abandon_after(AFTER)
        .start(&pool)
        .await
        .unwrap();
    let client = Client::new(database.pool.clone());
    let run = client.start::<Sole>(&()).await.unwrap();
    eventually(DEADLINE, "the attempt runs", async || {
        (!registry.all().is_empty()).then_some(())
    })
    .await;
    proxy.stall();
    let cut = Instant::now();
    let ended = eventually(DEADLINE, "the attempt ends", async || {
        registry.all()[0].ended
    })
    .await;
    // The last answer came before the cut.
    let late = Duration::from_secs(2);
    assert!(ended - cut <= AFTER + late, "{:?}", ended - cut);

    // As recovery would, in another process.
    run_sql(
        &database.pool,
        "update pgflow.step_tasks set queued_at = queued_at - interval '1 h', started_at = started_at - interval '1 h'; \
         update pgflow.claims set look_at = look_at - interval '1 h'; \
         select pgflow.requeue_stalled_tasks()",
    )
    .await;
    let other = super::start::<Sole>(&database.pool, registry.clone()).await;
    let output = run.wait().timeout(DEADLINE).await.unwrap();
    assert!(output.only > 1);
    let attempts = registry.all();
    for pair in attempts.windows(2) {
        assert!(
            pair[0].ended.is_some_and(|ended| ended <= pair[1].began),
            "{attempts:?}"
        );
        assert!(pair[0].number < pair[1].number, "{attempts:?}");
    }
    // Back again, it runs the next attempts.
    proxy.cut();
    proxy.resume();
    other.stop().await.unwrap();
    let run = client.start::<Sole>(&()).await.unwrap();
    eventually(DEADLINE, "the worker that is back claims", async || {
        (registry.all().len() > attempts.len()).then_some(())
    })
    .await;
    drop(cut_off);
    drop(run);
    assert_invariants(&database.pool).await;
}

#[tokio::test]
async fn a_worker_that_would_abandon_too_late_does_not_start() {
    let database = TestDb::new().await;
    run_sql(
        &database.pool,
        "update pgflow.installation set lost_after = '15 seconds'",
    )
    .await;
    let start = async |after: u64| {
        worker::<Sole>(Registry::default())
            .abandon_after(Duration::from_secs(after))
            .start(&database.pool)
            .await
    };
    let error = start(15).await.unwrap_err();
    let StartupError::InvalidOptions { problems } = &error else {
        panic!("{error}");
    };
    assert_eq!(problems[0].option(), "abandon_after");
    assert!(error.to_string().contains("less than 15s"), "{error}");
    start(14).await.unwrap().stop().await.unwrap();
    // Not only the first of several: its start spares the others most checks.
    let error = Workers::new(&database.pool)
        .add(worker::<Sole>(Registry::default()))
        .add(worker::<Sole>(Registry::default()).abandon_after(Duration::from_secs(15)))
        .start()
        .await
        .unwrap_err();
    assert!(
        matches!(error, StartupError::InvalidOptions { .. }),
        "{error}"
    );
}
