//! Workers that are stopped at any moment while thousands of tasks wait.

mod effects;

use std::time::Duration;

use pgflow::client::{Client, RunHandle};
use pgflow::prelude::*;
use sqlx::{AssertSqlSafe, PgPool, postgres::PgPoolOptions};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::{DEADLINE, running_workers, worker};
use crate::support::{TestDb, invariants::assert_invariants, runs::random};
use effects::{Effects, Kind};

const ROUNDS: usize = 16;
const WORKERS: usize = 4;
const SLOTS: usize = 50;
/// At the beginning of a round at least this many tasks wait.
const WAITING: usize = 3_000;
const RUN: u32 = 1_000;
/// For handlers that listen: none of them comes near it.
const PATIENT: Duration = Duration::from_mins(1);
/// The timeout for rounds with deaf handlers. The others end at once, and have their results
/// recorded long before it is over.
const SHORT: Duration = Duration::from_secs(2);

mod plain {
    use super::*;

    pub(super) struct Plain;

    #[flow(input = Vec<u32>, state = Effects, slug = "load", timeout = "10m")]
    impl Plain {
        #[step(map = input)]
        async fn work(item: u32, state: &Effects, ctx: &StepContext) -> StepResult<u32> {
            state.work(item, ctx).await
        }

        #[step(depends_on = [work])]
        async fn sum(work: &[u32], state: &Effects, ctx: &StepContext) -> StepResult<u64> {
            Ok(state.sum(work, ctx))
        }
    }
}

/// The same with a queue for each step: each process has a worker for each, which share its pool.
mod queues {
    use super::*;

    pub(super) struct Queues;

    #[flow(input = Vec<u32>, state = Effects, slug = "load", timeout = "10m", with_step_queues)]
    impl Queues {
        #[step(map = input)]
        async fn work(item: u32, state: &Effects, ctx: &StepContext) -> StepResult<u32> {
            state.work(item, ctx).await
        }

        #[step(depends_on = [work])]
        async fn sum(work: &[u32], state: &Effects, ctx: &StepContext) -> StepResult<u64> {
            Ok(state.sum(work, ctx))
        }
    }
}

use plain::Plain;
use queues::Queues;

/// A process with workers of the flow.
trait Process: Flow<Input = Vec<u32>> {
    /// Starts it; the future that is returned stops it and resolves when it has stopped.
    async fn launch(
        pool: &PgPool,
        effects: &Effects,
        shutdown_timeout: Duration,
    ) -> impl Future<Output = ()> + Send + use<Self>;

    fn sum(output: Self::Output) -> u64;
}

impl Process for Plain {
    async fn launch(
        pool: &PgPool,
        effects: &Effects,
        shutdown_timeout: Duration,
    ) -> impl Future<Output = ()> + Send + use<> {
        let worker = worker::<Self>(effects.clone())
            .concurrency(SLOTS)
            .shutdown_timeout(shutdown_timeout)
            .start(pool)
            .await
            .unwrap();
        async move { worker.stop().await.unwrap() }
    }

    fn sum(output: Self::Output) -> u64 {
        output.sum
    }
}

impl Process for Queues {
    async fn launch(
        pool: &PgPool,
        effects: &Effects,
        shutdown_timeout: Duration,
    ) -> impl Future<Output = ()> + Send + use<> {
        let workers = StepWorker::<Self>::all_with_state(effects.clone())
            .concurrency(SLOTS)
            .poll_interval(Duration::from_millis(20))
            .shutdown_timeout(shutdown_timeout)
            .start(pool)
            .await
            .unwrap();
        async move { workers.stop().await.unwrap() }
    }

    fn sum(output: Self::Output) -> u64 {
        output.sum
    }
}

struct Case<F: Process> {
    database: TestDb,
    effects: Effects,
    random: fastrand::Rng,
    runs: Vec<RunHandle<F>>,
}

impl<F: Process> Case<F> {
    async fn new(name: &str) -> Self {
        let database = TestDb::new().await;
        let effects = Effects::new();
        F::launch(&database.pool, &effects, PATIENT).await.await;
        Self {
            database,
            effects,
            random: random(name),
            runs: Vec::new(),
        }
    }

    /// Starts runs until enough tasks wait.
    async fn top_up(&mut self) {
        let client = Client::new(self.database.pool.clone());
        let input: Vec<u32> = (0..RUN).collect();
        while self.runs.len() * input.len() < self.effects.entered() + WAITING {
            self.runs.push(client.start::<F>(&input).await.unwrap());
        }
    }

    /// Starts workers and stops each at a moment of its own: after so many attempts, counted from
    /// the start of all.
    async fn round(&mut self, shutdown_timeout: Duration) {
        let mut stops = JoinSet::new();
        let before = self.effects.entered();
        for _ in 0..WORKERS {
            let pool = PgPoolOptions::new().max_connections(5);
            let pool = pool.connect(&self.database.url).await.unwrap();
            let stop = F::launch(&pool, &self.effects, shutdown_timeout).await;
            let moment = before + self.moment();
            let effects = self.effects.clone();
            stops.spawn(async move {
                effects.until_entered(moment).await;
                let stopped = timeout(shutdown_timeout + DEADLINE, stop).await;
                stopped.expect("a worker stops within its timeout");
                pool.close().await;
            });
        }
        while let Some(stopped) = stops.join_next().await {
            stopped.unwrap();
        }
        assert_eq!(running_workers(&self.database.pool).await, 0);
    }

    fn moment(&mut self) -> usize {
        let latest = [0, 20, 100, 400][self.random.usize(0..4)];
        self.random.usize(0..=latest)
    }

    /// Stops are over: rows say what the handlers did, and what has not ended can be claimed at
    /// once. Returns the number of handlers that were dropped so far.
    async fn check(&self) -> usize {
        let pool = &self.database.pool;
        let dropped = self.effects.compare(pool).await;
        assert_eq!(hidden_messages(pool).await, 0);
        dropped
    }

    /// Everything that is left is done by one fresh process, also what was dropped.
    async fn finish(self) {
        let pool = &self.database.pool;
        self.effects.let_some_be_deaf(false);
        self.effects.hurry();
        let stop = F::launch(pool, &self.effects, PATIENT).await;
        let total = self.runs.len();
        for run in self.runs {
            let output = run.wait().timeout(DEADLINE).await.unwrap();
            assert_eq!(F::sum(output), u64::from(RUN) * u64::from(RUN - 1) / 2);
        }
        stop.await;
        self.effects.compare(pool).await;
        let flaky = (0..RUN).filter(|item| Kind::of(*item) == Kind::Flaky);
        assert!(self.effects.attempts() >= total * (RUN as usize + 1 + flaky.count()));
        assert_invariants(pool).await;
    }
}

/// Returns the number of messages of all queues that no worker can read now.
async fn hidden_messages(pool: &PgPool) -> usize {
    let queues: Vec<String> = sqlx::query_scalar("select queue_name::text from pgmq.meta")
        .fetch_all(pool)
        .await
        .unwrap();
    let mut hidden = 0;
    for queue in queues {
        let count = format!("select count(*) from pgmq.\"q_{queue}\" where vt > clock_timestamp()");
        let count: i64 = sqlx::query_scalar(AssertSqlSafe(count))
            .fetch_one(pool)
            .await
            .unwrap();
        hidden += usize::try_from(count).unwrap();
    }
    hidden
}

/// Handlers that listen: nothing is lost, whatever the moment.
async fn nothing_is_lost<F: Process>(name: &str) {
    let mut case = Case::<F>::new(name).await;
    for _ in 0..ROUNDS {
        case.top_up().await;
        case.round(PATIENT).await;
        assert_eq!(case.check().await, 0, "every handler has ended");
    }
    let given_back = "select sum(uncounted_attempts) from pgflow.step_tasks";
    let given_back: i64 = sqlx::query_scalar(given_back)
        .fetch_one(&case.database.pool)
        .await
        .unwrap();
    assert_ne!(
        given_back, 0,
        "some were stopped between a claim and its handlers"
    );
    case.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn whatever_the_moment_every_attempt_is_counted_ran_and_was_recorded() {
    nothing_is_lost::<Plain>("plain").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_same_with_a_queue_for_each_step() {
    nothing_is_lost::<Queues>("queues").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn handlers_that_outlast_the_deadline_are_dropped_and_their_tasks_go_back_uncounted() {
    let mut case = Case::<Plain>::new("deaf").await;
    let mut dropped = 0;
    for round in 0..6 {
        case.effects.let_some_be_deaf(round % 2 == 0);
        case.top_up().await;
        let timeout = if round % 2 == 0 { SHORT } else { PATIENT };
        case.round(timeout).await;
        let now = case.check().await;
        if round % 2 == 1 {
            assert_eq!(now, dropped, "nobody was deaf in this round");
        }
        dropped = now;
    }
    assert_ne!(dropped, 0, "some were deaf");
    case.finish().await;
}
