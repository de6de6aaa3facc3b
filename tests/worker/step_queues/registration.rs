//! The registration of a step worker, and routes that differ from those of the code.

use pgflow::prelude::*;
use pgflow::startup::StartupError;
use sqlx::PgPool;

use super::step_worker;
use crate::support::TestDb;
use crate::worker::{all_rows, start};

mod queued {
    use pgflow::prelude::*;

    pub(super) struct Queued;

    #[flow(input = u32, slug = "Audit", with_step_queues)]
    impl Queued {
        #[step]
        async fn parse(input: u32) -> StepResult<u32> {
            Ok(input)
        }

        #[step(depends_on = [parse], slug = "writeReport")]
        async fn report(parse: u32, input: u32) -> StepResult<u32> {
            Ok(parse + input)
        }

        #[step(depends_on = [report])]
        async fn send_it_to_everybody_who_might_want_to_read_it(report: u32) -> StepResult<u32> {
            Ok(report)
        }
    }
}

/// The same shape in one queue.
mod plain {
    use pgflow::prelude::*;

    pub(super) struct Plain;

    #[flow(input = u32, slug = "Audit")]
    impl Plain {
        #[step]
        async fn parse(input: u32) -> StepResult<u32> {
            Ok(input)
        }

        #[step(depends_on = [parse], slug = "writeReport")]
        async fn report(parse: u32, input: u32) -> StepResult<u32> {
            Ok(parse + input)
        }

        #[step(depends_on = [report])]
        async fn send_it_to_everybody_who_might_want_to_read_it(report: u32) -> StepResult<u32> {
            Ok(report)
        }
    }
}

use plain::Plain;
use queued::{Queued, Step};

type Row = (String, String, Option<String>, String, Vec<String>);

#[tokio::test]
async fn a_step_worker_is_registered_for_its_step_alone() {
    let database = TestDb::new().await;
    for (step, slug, queue, flow_input_steps) in [
        (Step::Parse, "parse", "audit__parse", vec!["parse"]),
        (
            Step::Report,
            "writeReport",
            "audit__writereport",
            vec!["writeReport"],
        ),
        (
            Step::SendItToEverybodyWhoMightWantToReadIt,
            "send_it_to_everybody_who_might_want_to_read_it",
            "audit__2",
            vec![],
        ),
    ] {
        let worker = step_worker::<Queued>(step, ());
        let worker = worker.start(&database.pool).await.unwrap();
        let row: Row = sqlx::query_as(
            "select function_name, flow_slug, step_slug, queue_name, flow_input_steps \
             from pgflow.workers join pgflow.worker_functions using (function_name) where worker_id = $1",
        )
        .bind(worker.worker_id())
        .fetch_one(&database.pool)
        .await
        .unwrap();
        let expected: Row = (
            queue.to_owned(),
            "Audit".to_owned(),
            Some(slug.to_owned()),
            queue.to_owned(),
            flow_input_steps
                .into_iter()
                .map(ToOwned::to_owned)
                .collect(),
        );
        assert_eq!(row, expected);
        worker.stop().await.unwrap();
    }
}

/// A database in which the flow is stored, and has a run.
async fn with_a_run<F: Flow<Input = u32>>(database: &TestDb) {
    F::start(&database.pool, &1).await.unwrap();
}

async fn expect_routing_mismatch(pool: &PgPool, before: &str, error: StartupError) {
    let StartupError::RoutingMismatch(mismatch) = &error else {
        panic!("{error}");
    };
    assert!(!mismatch.differences.is_empty(), "{error}");
    assert!(error.to_string().contains("Audit_v2"), "{error}");
    assert_eq!(all_rows(pool, &[]).await, before, "after: {error}");
}

#[tokio::test]
async fn a_production_flow_does_not_get_step_queues() {
    let database = TestDb::new().await;
    let worker = start::<Plain>(&database.pool, ()).await;
    worker.stop().await.unwrap();
    with_a_run::<Plain>(&database).await;
    let before = all_rows(&database.pool, &[]).await;
    for &step in Step::ALL {
        let started = step_worker::<Queued>(step, ()).start(&database.pool).await;
        expect_routing_mismatch(&database.pool, &before, started.unwrap_err()).await;
    }
    let started = StepWorker::<Queued>::all().start(&database.pool).await;
    expect_routing_mismatch(&database.pool, &before, started.unwrap_err()).await;
}

#[tokio::test]
async fn a_production_flow_does_not_lose_its_step_queues() {
    let database = TestDb::new().await;
    let workers = StepWorker::<Queued>::all().start(&database.pool).await;
    workers.unwrap().stop().await.unwrap();
    with_a_run::<Queued>(&database).await;
    let before = all_rows(&database.pool, &[]).await;
    let started = FlowWorker::<Plain>::new().start(&database.pool).await;
    expect_routing_mismatch(&database.pool, &before, started.unwrap_err()).await;
}

#[tokio::test]
async fn a_foreign_queue_with_the_name_of_one_step_s_leaves_nothing_behind() {
    let database = TestDb::new().await;
    crate::worker::run_sql(&database.pool, "select pgmq.create('audit__writereport')").await;
    let before = all_rows(&database.pool, &[]).await;
    let started = step_worker::<Queued>(Step::Parse, ())
        .start(&database.pool)
        .await;
    let error = started.unwrap_err();
    assert!(matches!(error, StartupError::QueueCollision(_)), "{error}");
    assert_eq!(all_rows(&database.pool, &[]).await, before);
}

#[tokio::test]
async fn a_disabled_function_stops_the_worker_of_its_step_alone() {
    let database = TestDb::new().await;
    crate::worker::run_sql(
        &database.pool,
        "insert into pgflow.worker_functions (function_name, enabled, disabled_at) values ('audit__parse', false, now())",
    )
    .await;
    let before = all_rows(&database.pool, &[]).await;
    let started = step_worker::<Queued>(Step::Parse, ())
        .start(&database.pool)
        .await;
    let error = started.unwrap_err();
    assert!(
        matches!(error, StartupError::FunctionDisabled(_)),
        "{error}"
    );
    assert_eq!(all_rows(&database.pool, &[]).await, before);
    let worker = step_worker::<Queued>(Step::Report, ())
        .start(&database.pool)
        .await;
    worker.unwrap().stop().await.unwrap();
}
