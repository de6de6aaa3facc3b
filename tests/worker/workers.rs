//! Several workers in one process: started in order, stopped together.

use std::{future::pending, time::Duration};

use pgflow::client::Client;
use pgflow::prelude::*;
use pgflow::{
    startup::StartupError,
    worker::{WorkerError, WorkerHealth, WorkerState},
};
use tokio_util::sync::CancellationToken;

use super::{
    DEADLINE, SIGNALS, in_time, probe::Probe, run_sql, running_workers, start, terminate_self,
    until_held_up, until_workers,
};
use crate::support::{TestDb, eventually, invariants::assert_invariants};

mod plain {
    use super::*;

    pub(super) struct Plain;

    #[flow(input = u32, state = Probe)]
    impl Plain {
        #[step]
        async fn double(input: u32) -> StepResult<u32> {
            Ok(input * 2)
        }

        #[step(depends_on = [double])]
        async fn wait(double: u32, state: &Probe) -> StepResult<u32> {
            state.pass("plain").await;
            Ok(double)
        }
    }
}

mod queued {
    use super::*;

    pub(super) struct Queued;

    #[flow(input = u32, state = Probe, with_step_queues)]
    impl Queued {
        #[step]
        async fn double(input: u32) -> StepResult<u32> {
            Ok(input * 2)
        }

        #[step(depends_on = [double])]
        async fn wait(double: u32, state: &Probe, ctx: &StepContext) -> StepResult<u32> {
            state.note("queued");
            tokio::select! {
                () = state.pass("queued") => {}
                () = ctx.cancelled() => state.note("told to stop"),
            }
            Ok(double)
        }
    }
}

use plain::Plain;
use queued::{Queued, Step};

/// Workers that only wake each other.
fn workers(database: &TestDb, probe: &Probe) -> Workers {
    let never = Duration::from_hours(1);
    Workers::new(&database.pool)
        .add(FlowWorker::<Plain>::with_state(probe.clone()).poll_interval(never))
        .add(StepWorker::<Queued>::all_with_state(probe.clone()).poll_interval(never))
}

#[tokio::test]
async fn flows_of_both_kinds_run_in_one_process() {
    let database = TestDb::new().await;
    let workers = workers(&database, &Probe::open()).start().await.unwrap();
    assert_eq!(workers.worker_ids().len(), 3);
    let client = Client::new(database.pool.clone());
    for input in 1..4 {
        let plain = client.start::<Plain>(&input).await.unwrap();
        let queued = client.start::<Queued>(&input).await.unwrap();
        assert_eq!(
            plain.wait().timeout(DEADLINE).await.unwrap().wait,
            input * 2
        );
        assert_eq!(
            queued.wait().timeout(DEADLINE).await.unwrap().wait,
            input * 2
        );
    }
    workers.stop().await.unwrap();
    assert_eq!(running_workers(&database.pool).await, 0);
    assert_invariants(&database.pool).await;
}

#[tokio::test]
async fn one_that_can_not_start_ends_those_that_did_gracefully() {
    let database = TestDb::new().await;
    let probe = Probe::closed();
    start::<Plain>(&database.pool, probe.clone())
        .await
        .stop()
        .await
        .unwrap();
    let client = Client::new(database.pool.clone());
    let run = client.start::<Plain>(&1).await.unwrap();

    // The last worker's start is held up until the first one runs a task, and then refused.
    run_sql(
        &database.pool,
        "create function refuse() returns trigger language plpgsql as \
             $$ begin raise exception 'the test refuses' using errcode = 'PF007'; end $$; \
         create trigger refuse before insert on pgflow.workers for each row \
             when (new.step_slug = 'wait') execute function refuse()",
    )
    .await;
    let mut holding = database.pool.begin().await.unwrap();
    sqlx::raw_sql("insert into pgflow.worker_functions (function_name) values ('queued__wait')")
        .execute(&mut *holding)
        .await
        .unwrap();
    let starting = tokio::spawn(workers(&database, &probe).start());
    until_held_up(&database.pool, "track_worker_function").await;
    assert_eq!(running_workers(&database.pool).await, 2);
    probe.until_seen("plain").await;
    holding.commit().await.unwrap();

    eventually(DEADLINE, "the others were asked to stop", async || {
        // All but the plain one, whose handler runs.
        (running_workers(&database.pool).await == 1).then_some(())
    })
    .await;
    probe.let_all_go();
    let error = in_time(starting).await.unwrap().unwrap_err();
    assert!(matches!(&error, StartupError::Refused(_)), "{error}");
    assert_eq!(running_workers(&database.pool).await, 0);
    assert_eq!(run.wait().timeout(DEADLINE).await.unwrap().wait, 2);
    assert_invariants(&database.pool).await;
}

#[tokio::test]
async fn one_whose_row_is_gone_stops_alone_and_its_error_is_theirs_at_the_end() {
    let database = TestDb::new().await;
    let workers = workers(&database, &Probe::open()).start().await.unwrap();
    run_sql(
        &database.pool,
        "delete from pgflow.workers where queue_name = 'queued__double'",
    )
    .await;
    eventually(DEADLINE, "one has stopped", async || {
        let health = workers.health();
        let stopped = |worker: &&WorkerHealth| worker.state == WorkerState::Stopped;
        health.workers.iter().find(stopped).cloned()
    })
    .await;
    let client = Client::new(database.pool.clone());
    let run = client.start::<Plain>(&1).await.unwrap();
    assert_eq!(run.wait().timeout(DEADLINE).await.unwrap().wait, 2);
    assert!(!workers.health().is_ready);
    let error = in_time(workers.stop()).await.unwrap_err();
    assert!(matches!(error, WorkerError::NotRegistered(_)), "{error}");
}

#[tokio::test]
async fn one_that_is_deprecated_leaves_the_others_alone() {
    let database = TestDb::new().await;
    let workers = workers(&database, &Probe::open()).start().await.unwrap();
    run_sql(
        &database.pool,
        "update pgflow.workers set deprecated_at = now() where step_slug = 'wait'",
    )
    .await;
    until_workers(&database.pool, 2).await;
    let client = Client::new(database.pool.clone());
    let run = client.start::<Plain>(&1).await.unwrap();
    assert_eq!(run.wait().timeout(DEADLINE).await.unwrap().wait, 2);
    workers.stop().await.unwrap();
}

#[tokio::test]
async fn a_request_stops_what_it_was_set_for() {
    let database = TestDb::new().await;
    let (set, all) = (CancellationToken::new(), CancellationToken::new());
    let probe = Probe::open();
    let workers = Workers::new(&database.pool)
        .add(FlowWorker::<Plain>::with_state(probe.clone()).shutdown_on(pending()))
        .add(
            StepWorker::<Queued>::all_with_state(probe.clone())
                .step(Step::Wait, |worker| worker.shutdown_on(pending()))
                .shutdown_on(set.clone().cancelled_owned()),
        )
        .shutdown_on(all.clone().cancelled_owned());
    let running = tokio::spawn(workers.run());
    until_workers(&database.pool, 3).await;
    set.cancel();
    until_workers(&database.pool, 1).await;
    let left: String =
        sqlx::query_scalar("select flow_slug from pgflow.workers where stopped_at is null")
            .fetch_one(&database.pool)
            .await
            .unwrap();
    assert_eq!(left, "plain");
    assert!(!running.is_finished());
    all.cancel();
    in_time(running).await.unwrap().unwrap();
    assert_eq!(running_workers(&database.pool).await, 0);
}

#[tokio::test]
async fn a_signal_drains_all() {
    let _alone = SIGNALS.lock().await;
    let database = TestDb::new().await;
    let probe = Probe::closed();
    let running = tokio::spawn(workers(&database, &probe).run());
    until_workers(&database.pool, 3).await;
    let client = Client::new(database.pool.clone());
    client.start::<Plain>(&1).await.unwrap();
    client.start::<Queued>(&1).await.unwrap();
    probe.until_seen("plain").await;
    probe.until_seen("queued").await;

    terminate_self();
    probe.until_seen("told to stop").await;
    // The plain one's handler still runs.
    until_workers(&database.pool, 1).await;
    assert!(!running.is_finished());
    probe.let_all_go();
    in_time(running).await.unwrap().unwrap();
}

#[tokio::test]
async fn no_workers_at_all_are_a_mistake() {
    let database = TestDb::new().await;
    let error = Workers::new(&database.pool).run().await.unwrap_err();
    let WorkerError::Startup(error @ StartupError::InvalidOptions { .. }) = &error else {
        panic!("{error}");
    };
    let text = error.to_string();
    assert!(
        text.contains("`add` is never called; expected at least one worker"),
        "{text}"
    );
}

#[tokio::test]
async fn dropping_the_handle_drains_all() {
    let database = TestDb::new().await;
    drop(workers(&database, &Probe::open()).start().await.unwrap());
    until_workers(&database.pool, 0).await;
}
