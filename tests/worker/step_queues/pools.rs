//! One pool of workers for each step.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use pgflow::client::Client;
use pgflow::prelude::*;
use pgflow::worker::WorkerHandle;
use sqlx::PgPool;
use uuid::Uuid;

use super::step_worker;
use crate::support::{TestDb, invariants::assert_invariants};
use crate::worker::{DEADLINE, probe::Probe};

/// A step before a map, and one after it.
mod fan {
    use super::*;

    pub(super) struct Fan;

    #[flow(input = u32, with_step_queues)]
    impl Fan {
        #[step]
        async fn split(input: u32) -> StepResult<Vec<u32>> {
            Ok((0..input).collect())
        }

        #[step(map = split, slug = "squareEach")]
        async fn square(item: u32, input: u32) -> StepResult<u32> {
            assert!(item < input);
            Ok(item * item)
        }

        #[step(depends_on = [square])]
        async fn sum(square: &[u32], input: u32) -> StepResult<(u32, u32)> {
            Ok((square.iter().sum(), input))
        }
    }
}

/// Returns the worker of each step's tasks.
async fn who_did_what(pool: &PgPool, run_id: Uuid) -> Vec<(String, Uuid, i64)> {
    sqlx::query_as(
        "select step_slug, last_worker_id, count(*) from pgflow.step_tasks where run_id = $1 \
         group by step_slug, last_worker_id order by step_slug, last_worker_id",
    )
    .bind(run_id)
    .fetch_all(pool)
    .await
    .unwrap()
}

#[tokio::test]
async fn a_flow_goes_to_its_end_with_a_worker_for_each_step() {
    use fan::{Fan, Step};
    let database = TestDb::new().await;
    let mut workers: Vec<WorkerHandle> = Vec::new();
    for &step in Step::ALL {
        // As separate processes would, each with a pool of its own.
        let pool = PgPool::connect(&database.url).await.unwrap();
        workers.push(step_worker::<Fan>(step, ()).start(&pool).await.unwrap());
    }
    let client = Client::new(database.pool.clone());
    let run = client.start::<Fan>(&30).await.unwrap();
    let output = run.wait().timeout(DEADLINE).await.unwrap();
    assert_eq!(output.sum, (8555, 30));
    let of = |step: Step| workers[step.index()].worker_id();
    assert_eq!(
        who_did_what(&database.pool, run.run_id()).await,
        [
            ("split".to_owned(), of(Step::Split), 1),
            ("squareEach".to_owned(), of(Step::Square), 30),
            ("sum".to_owned(), of(Step::Sum), 1),
        ]
    );
    for worker in workers {
        worker.stop().await.unwrap();
    }
    assert_invariants(&database.pool).await;
}

#[tokio::test]
async fn a_failed_attempt_is_retried_by_the_pool_of_its_step() {
    mod flaky {
        use super::*;

        pub(super) struct Flaky;

        #[flow(input = u32, base_delay = "1s", with_step_queues)]
        impl Flaky {
            #[step]
            async fn fetch(input: u32, ctx: &StepContext) -> StepResult<u32> {
                if ctx.attempt() == 1 {
                    Err("the line is busy")?;
                }
                Ok(input)
            }

            #[step(depends_on = [fetch])]
            async fn keep(fetch: u32) -> StepResult<u32> {
                Ok(fetch)
            }
        }
    }
    use flaky::{Flaky, Step};
    let database = TestDb::new().await;
    let fetch = step_worker::<Flaky>(Step::Fetch, ())
        .start(&database.pool)
        .await;
    let keep = step_worker::<Flaky>(Step::Keep, ())
        .start(&database.pool)
        .await;
    let client = Client::new(database.pool.clone());
    let run = client.start::<Flaky>(&7).await.unwrap();
    assert_eq!(run.wait().timeout(DEADLINE).await.unwrap().keep, 7);
    let task = crate::worker::task(&database.pool, run.run_id(), Step::Fetch).await;
    assert_eq!(task.attempts, 2);
    fetch.unwrap().stop().await.unwrap();
    keep.unwrap().stop().await.unwrap();
    assert_invariants(&database.pool).await;
}

/// The number of running handlers of a step, and its maximum.
#[derive(Debug, Default)]
struct Peak {
    running: AtomicUsize,
    most: AtomicUsize,
}

impl Peak {
    async fn during(&self, work: impl Future<Output = ()>) {
        let running = self.running.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(running, Ordering::SeqCst);
        work.await;
        self.running.fetch_sub(1, Ordering::SeqCst);
    }
}

#[derive(Clone)]
struct Crowd {
    probe: Probe,
    wide: Arc<Peak>,
    narrow: Arc<Peak>,
}

/// Two steps with many tasks each.
struct Crowded;

#[flow(input = Vec<u32>, state = Crowd, with_step_queues)]
impl Crowded {
    #[step(map = input)]
    async fn wide(item: u32, state: &Crowd) -> StepResult<u32> {
        state.wide.during(state.probe.pass("wide")).await;
        Ok(item)
    }

    #[step(map = input)]
    async fn narrow(item: u32, state: &Crowd) -> StepResult<u32> {
        state.narrow.during(state.probe.pass("narrow")).await;
        Ok(item)
    }
}

#[tokio::test]
async fn each_pool_runs_as_many_tasks_as_it_has_slots() {
    let database = TestDb::new().await;
    let crowd = Crowd {
        probe: Probe::closed(),
        wide: Arc::default(),
        narrow: Arc::default(),
    };
    let worker = |step, slots| {
        let worker = step_worker::<Crowded>(step, crowd.clone()).concurrency(slots);
        let pool = database.pool.clone();
        async move { worker.start(&pool).await.unwrap() }
    };
    let workers = [worker(Step::Wide, 5).await, worker(Step::Narrow, 2).await];
    let client = Client::new(database.pool.clone());
    let input: Vec<u32> = (0..40).collect();
    let run = client.start::<Crowded>(&input).await.unwrap();

    crowd.probe.until_count(7).await;
    let mut full = vec!["narrow"; 2];
    full.extend(["wide"; 5]);
    assert_eq!(crowd.probe.seen(), full);

    crowd.probe.let_all_go();
    let output = run.wait().timeout(DEADLINE).await.unwrap();
    assert_eq!((output.wide, output.narrow), (input.clone(), input));
    let most = |peak: &Peak| peak.most.load(Ordering::SeqCst);
    assert_eq!((most(&crowd.wide), most(&crowd.narrow)), (5, 2));
    for worker in workers {
        worker.stop().await.unwrap();
    }
    assert_invariants(&database.pool).await;
}
