//! A program against the interface of the first release. Frozen.

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use pgflow::client::{Client, RunError, RunStatus, StepStatus};
use pgflow::prelude::*;
use pgflow::{WorkerError, WorkerHandle};
use serde::{Deserialize, Serialize};

use crate::support::{TestDb, invariants::assert_invariants};

#[derive(Debug, Serialize, Deserialize)]
struct Lockfile {
    plan: String,
    names: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Package {
    name: String,
}

#[derive(Debug, Default)]
struct AppState {
    fetched: AtomicU32,
}

struct CrateAudit;

#[flow(
    input = Lockfile,
    state = AppState,
    max_attempts = 3,
    base_delay = "1s",
    timeout = "30s",
    output_derive = [Debug, PartialEq]
)]
impl CrateAudit {
    const LIMIT: usize = 10;

    /// Reads the lock file.
    #[step]
    async fn parse(input: &Lockfile) -> Result<Vec<Package>, std::num::TryFromIntError> {
        let _: u32 = Self::LIMIT.try_into()?;
        let names = input.names.iter().take(Self::LIMIT).cloned();
        Ok(names.map(|name| Package { name }).collect())
    }

    #[step(map = parse, max_attempts = 5)]
    async fn inspect(item: Package, ctx: &StepContext, state: &AppState) -> anyhow::Result<usize> {
        state.fetched.fetch_add(1, Ordering::SeqCst);
        if item.name == "flaky" && ctx.attempt() == 1 {
            return Err(RetryAfter::new(Duration::from_secs(1), "again").into());
        }
        if item.name == "broken" {
            return Err(Permanent::new("it is broken").into());
        }
        Ok(item.name.len())
    }

    #[step(depends_on = [inspect], when_exhausted = "skip")]
    async fn licences(inspect: &[usize]) -> StepResult<usize> {
        Ok(inspect.len())
    }

    #[step(depends_on = [parse, licences])]
    async fn report(
        #[from(parse)] packages: &[Package],
        licences: Option<&usize>,
        ctx: StepContext,
    ) -> StepResult<(usize, Option<usize>)> {
        let input: Lockfile = ctx.flow_input().await?;
        assert_eq!(input.names.len(), packages.len());
        Ok((packages.len(), licences.copied()))
    }

    #[step(if = { plan: "premium" })]
    async fn notify(_input: Lockfile) -> StepResult<()> {
        Ok(())
    }
}

fn lockfile(plan: &str, names: &[&str]) -> Lockfile {
    Lockfile {
        plan: plan.to_owned(),
        names: names.iter().map(ToString::to_string).collect(),
    }
}

async fn worker(database: &TestDb) -> Result<WorkerHandle, WorkerError> {
    let worker = FlowWorker::<CrateAudit>::with_state(AppState::default())
        .concurrency(8)
        .poll_interval(Duration::from_millis(50))
        .shutdown_timeout(Duration::from_secs(10))
        .function_name("audits")
        .migrate(true)
        .start(&database.pool)
        .await?;
    Ok(worker)
}

#[tokio::test]
async fn it_runs_to_its_end() {
    let database = TestDb::new().await;
    let worker = worker(&database).await.unwrap();
    let client = Client::new(database.pool.clone());
    let input = lockfile("free", &["serde", "flaky", "tokio"]);
    let run: RunHandle<CrateAudit> = client.start::<CrateAudit>(&input).await.unwrap();
    let output = run.wait().timeout(Duration::from_secs(20)).await.unwrap();
    assert_eq!(
        output,
        CrateAuditOutput {
            report: (3, Some(3)),
            notify: None
        }
    );
    let snapshot = run.snapshot().await.unwrap();
    assert_eq!(snapshot.status(), RunStatus::Completed);
    let notify = snapshot.step(Step::Notify).unwrap();
    assert_eq!(notify.status, StepStatus::Skipped);
    worker.stop().await.unwrap();
    assert_invariants(&database.pool).await;
}

#[tokio::test]
async fn a_failed_run_names_its_step() {
    let database = TestDb::new().await;
    let worker = worker(&database).await.unwrap();
    let mut transaction = database.pool.begin().await.unwrap();
    let input = lockfile("premium", &["broken"]);
    let run_id = CrateAudit::start(&mut *transaction, &input).await.unwrap();
    transaction.commit().await.unwrap();
    let run = Client::new(database.pool.clone()).run::<CrateAudit>(run_id);
    let error = run
        .wait()
        .timeout(Duration::from_secs(20))
        .await
        .unwrap_err();
    let RunError::Failed { step, message, .. } = &error else {
        panic!("{error}");
    };
    assert_eq!(step.as_deref(), Some("inspect"));
    assert_eq!(message, "it is broken");
    worker.shutdown();
    worker.stopped().await;
    worker.join().await.unwrap();
    assert_invariants(&database.pool).await;
}

struct Ping;

#[flow(input = u32, step_enum = PingStep)]
impl Ping {
    #[step]
    async fn pong(input: u32) -> StepResult<u32> {
        Ok(input + 1)
    }
}

#[tokio::test]
async fn a_worker_without_state_runs_until_it_is_told_to_stop() {
    let database = TestDb::new().await;
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let pool = database.pool.clone();
    let running = tokio::spawn(async move {
        FlowWorker::<Ping>::new()
            .poll_interval(Duration::from_millis(50))
            .shutdown_on(async move { drop(stopped.await) })
            .run(&pool)
            .await
    });
    let client = Client::new(database.pool.clone());
    let id = uuid::Uuid::now_v7();
    let run =
        crate::support::eventually(Duration::from_secs(20), "the flow is defined", async || {
            client.start_with_id::<Ping>(id, &1).await.ok()
        })
        .await;
    assert_eq!(run.run_id(), id);
    assert_eq!(run.wait().await.unwrap().pong, 2);
    assert_eq!(PingStep::Pong.slug(), "pong");
    stop.send(()).unwrap();
    running.await.unwrap().unwrap();
    assert_invariants(&database.pool).await;
}
