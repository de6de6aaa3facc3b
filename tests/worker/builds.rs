//! Builds of an application that can't read what others wrote: a rollback rescues the runs.

use std::time::Duration;

use pgflow::client::{Client, RunHandle};
use pgflow::prelude::*;
use pgflow::startup::StartupError;
use pgflow::worker::WorkerHandle;
use sqlx::PgPool;
use uuid::Uuid;

use super::{DEADLINE, start};
use crate::support::{TestDb, eventually, invariants::assert_invariants};

/// The build that runs have begun with.
mod one {
    use pgflow::prelude::*;
    use serde::{Deserialize, Serialize};

    #[derive(Debug, Serialize, Deserialize)]
    pub(super) struct Line {
        pub(super) cents: u32,
    }

    pub(super) struct Orders;

    #[flow(input = Vec<u32>, with_step_queues, base_delay = "1s", max_attempts = 5)]
    impl Orders {
        #[step]
        async fn parse(input: &[u32]) -> StepResult<Vec<Line>> {
            Ok(input.iter().map(|&cents| Line { cents }).collect())
        }

        #[step(map = parse)]
        async fn price(item: &Line) -> StepResult<u32> {
            Ok(item.cents * 2)
        }

        #[step(depends_on = [price])]
        async fn total(price: &[u32]) -> StepResult<u32> {
            Ok(price.iter().sum())
        }
    }
}

/// The next build: the same shape, with a renamed field and a smaller price.
mod two {
    use pgflow::prelude::*;
    use serde::{Deserialize, Serialize};

    #[derive(Debug, Serialize, Deserialize)]
    pub(super) struct Line {
        pub(super) amount: u32,
    }

    pub(super) struct Orders;

    #[flow(input = Vec<u32>, with_step_queues, base_delay = "1s", max_attempts = 5)]
    impl Orders {
        #[step]
        async fn parse(input: &[u32]) -> StepResult<Vec<Line>> {
            Ok(input.iter().map(|&amount| Line { amount }).collect())
        }

        #[step(map = parse)]
        async fn price(item: &Line) -> StepResult<u8> {
            Ok(u8::try_from(item.amount)?)
        }

        #[step(depends_on = [price])]
        async fn total(price: &[u8]) -> StepResult<u32> {
            Ok(price.iter().copied().map(u32::from).sum())
        }
    }
}

async fn serve<F: StepQueued<State = ()>>(
    pool: &PgPool,
    step: F::Step,
    build: &str,
) -> WorkerHandle {
    let worker = StepWorker::<F>::with_state(step, ()).build(build);
    let worker = worker.poll_interval(Duration::from_millis(20));
    worker.start(pool).await.expect("the worker starts")
}

/// Waits until so many tasks of the step have a status.
async fn until_tasks(pool: &PgPool, step: &str, status: &str, failures: i32, tasks: i64) {
    let what = format!("{tasks} tasks of {step} are {status}");
    eventually(DEADLINE, what, async || {
        let found: i64 = sqlx::query_scalar(
            "select count(*) from pgflow.step_tasks
             where step_slug = $1 and status = $2 and attempts_count - uncounted_attempts >= $3",
        )
        .bind(step)
        .bind(status)
        .bind(failures)
        .fetch_one(pool)
        .await
        .unwrap();
        (found == tasks).then_some(())
    })
    .await;
}

async fn error(pool: &PgPool, run_id: Uuid, step: &str) -> String {
    sqlx::query_scalar(
        "select error_message from pgflow.step_tasks where run_id = $1 and step_slug = $2 and task_index = 0",
    )
    .bind(run_id)
    .bind(step)
    .fetch_one(pool)
    .await
    .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_build_that_can_not_read_fifty_runs_is_rolled_back_and_all_of_them_complete() {
    let database = TestDb::new().await;
    let pool = &database.pool;
    let parse = serve::<one::Orders>(pool, one::Step::Parse, "1.0.0").await;
    let client = Client::new(pool.clone());
    let inputs: Vec<Vec<u32>> = (0..50).map(|n| vec![n, 1]).collect();
    let runs: Vec<RunHandle<one::Orders>> = client.start_many(&inputs).await.unwrap();
    until_tasks(pool, "parse", "completed", 0, 50).await;
    parse.stop().await.unwrap();

    // Deployed over them: each of their 100 elements is tried, and waits for its next attempt.
    let bad = serve::<two::Orders>(pool, two::Step::Price, "2.0.0").await;
    until_tasks(pool, "price", "queued", 1, 100).await;
    bad.stop().await.unwrap();
    let message = error(pool, runs[7].run_id(), "price").await;
    let expected = "step `price`: this build (2.0.0) can't read a stored value, which build 1.0.0 wrote: the element \
                    (`item`): missing field `amount`";
    assert!(message.starts_with(expected), "{message}");

    // Rolled back.
    let good = [
        serve::<one::Orders>(pool, one::Step::Price, "1.0.0").await,
        serve::<one::Orders>(pool, one::Step::Total, "1.0.0").await,
    ];
    for (run, n) in runs.iter().zip(0..) {
        let output = run.wait().timeout(DEADLINE).await.expect("it completes");
        assert_eq!(output.total, (n + 1) * 2);
    }
    for worker in good {
        worker.stop().await.unwrap();
    }
    assert_invariants(pool).await;
}

#[tokio::test]
async fn the_build_that_wrote_a_value_is_named_where_it_is_known_and_another() {
    let database = TestDb::new().await;
    let pool = &database.pool;
    let workers = [
        serve::<one::Orders>(pool, one::Step::Parse, "1.0.0").await,
        serve::<one::Orders>(pool, one::Step::Price, "1.1.0").await,
    ];
    let client = Client::new(pool.clone());
    let inputs = vec![vec![1, 500]; 4];
    let runs: Vec<RunHandle<one::Orders>> = client.start_many(&inputs).await.unwrap();
    until_tasks(pool, "price", "completed", 0, 8).await;
    for worker in workers {
        worker.stop().await.unwrap();
    }
    // Of the first run the other element is another build's, of the second this one; of the third
    // the build is one that is not known, and of the fourth it is the very build that can't read
    // it.
    for (run, element, build) in [
        (0, 0, Some("1.2.0")),
        (1, 1, Some("1.2.0")),
        (2, 1, None),
        (3, 1, Some("2.0.0")),
    ] {
        let changed = sqlx::query(
            "with other as (
                 insert into pgflow.workers (worker_id, function_name, queue_name, flow_slug, build, stopped_at)
                 values (gen_random_uuid(), 'f', 'q', 'orders', $3, now()) returning worker_id
             )
             update pgflow.step_tasks t set last_worker_id = o.worker_id
             from other o where t.run_id = $1 and t.step_slug = 'price' and t.task_index = $2",
        )
        .bind(runs[run].run_id())
        .bind(element)
        .bind(build)
        .execute(pool)
        .await
        .unwrap();
        assert_eq!(changed.rows_affected(), 1);
    }
    let bad = serve::<two::Orders>(pool, two::Step::Total, "2.0.0").await;
    until_tasks(pool, "total", "queued", 1, 4).await;
    bad.stop().await.unwrap();
    for (run, writer) in runs.iter().zip([
        ", which build 1.1.0 wrote",
        ", which build 1.2.0 wrote",
        "",
        "",
    ]) {
        let message = error(pool, run.run_id(), "total").await;
        let expected = format!(
            "step `total`: this build (2.0.0) can't read a stored value{writer}: the output of dependency `price`: at `[1]`: "
        );
        assert!(message.starts_with(&expected), "{message}");
    }
    assert_invariants(pool).await;
}

struct Plain;

#[flow(input = u32)]
impl Plain {
    #[step]
    async fn only(input: u32) -> StepResult<u32> {
        Ok(input)
    }
}

#[tokio::test]
async fn the_build_is_the_version_of_the_crate_unless_a_worker_names_it() {
    let database = TestDb::new().await;
    let pool = &database.pool;
    let default = start::<Plain>(pool, ()).await;
    let named = FlowWorker::<Plain>::new().build("2026-12-01.3");
    let named = named.start(pool).await.expect("the worker starts");
    let together = Workers::new(pool)
        .build("all of them")
        .add(FlowWorker::<Plain>::new())
        .start()
        .await
        .expect("the workers start");
    let builds: Vec<String> =
        sqlx::query_scalar("select build from pgflow.worker_status order by started_at")
            .fetch_all(pool)
            .await
            .unwrap();
    assert_eq!(
        builds,
        [env!("CARGO_PKG_VERSION"), "2026-12-01.3", "all of them"]
    );
    for worker in [default, named] {
        worker.stop().await.unwrap();
    }
    together.stop().await.unwrap();
    let refused = FlowWorker::<Plain>::new().build("\n").start(pool).await;
    let error = refused.expect_err("refused");
    assert!(
        matches!(&error, StartupError::InvalidOptions { problems } if problems[0].option() == "build"),
        "{error}"
    );
    assert_invariants(pool).await;
}
