//! The whole of a flow over a real database, without a worker.

use std::{any::Any, collections::BTreeMap, fmt, future::IntoFuture, marker::PhantomData};

use sqlx::PgPool;
use uuid::Uuid;

use super::{
    EndedRun, RunToEndError, TaskReport, TaskStatus,
    claims::{Claims, patiently},
    driver::{Attempts, Driver},
    handlers::Borrowed,
    workers::TestWorkers,
};
use crate::{
    client::{Client, ClientError, RunError, StartFlow},
    flow::{BoxFuture, Flow, SharedState},
    sql::testing::{TaskRow, run_status, tasks},
};

/// Starts a run of flow `F` and runs it to its end, without a worker; await what this returns.
///
/// The database is any that is migrated; the pool's role is the one that migrated it. The
/// definition is stored, or verified, as a worker's start does it. Then the run's tasks are
/// claimed, their handlers are run in the calling task, up to 10 side by side, and their results
/// recorded: with the SQL functions and the code of a worker, so timeouts, panics, retries,
/// conditions and modes are what they are in production. Only time is not: when nothing runs and no
/// task is due, the task that would be next is taken at once, so no test waits for a retry's delay
/// or for `start_delay`.
///
/// Only tasks of this run are taken. Other runs of the flow stay as they are, so calls can run side
/// by side in one database, also of the same flow. A flow that has live workers is refused: they
/// would take the tasks.
///
/// Steps with `on = failure` or `on = end` run too, once the run has ended: the call returns after
/// them.
///
/// A run that failed is not an error here: see [`EndedRun::error`].
///
/// A call that is dropped before its end leaves its run as it is: unfinished, with tasks in their
/// queues, which a later worker of the flow would take.
///
/// ```no_run
/// # async fn example<F>(pool: sqlx::PgPool, step: F::Step, input: F::Input) -> Result<(), Box<dyn std::error::Error>>
/// # where F: pgflow_runtime::flow::Flow<State = (), Output: Send> {
/// # use pgflow_runtime as pgflow;
/// use pgflow::testing::run_to_end;
///
/// let run = run_to_end::<F>(&pool, &(), input).await?;
/// assert_eq!(run.task(step, 0).unwrap().attempts.len(), 1);
/// let output = run.into_output()?;
/// # Ok(())
/// # }
/// ```
pub fn run_to_end<'a, F: Flow>(
    pool: &'a PgPool,
    state: &'a F::State,
    input: F::Input,
) -> RunToEnd<'a, F> {
    RunToEnd {
        pool,
        state: state.lend(),
        input,
        concurrency: None,
    }
}

/// Runs a run to its end when it is awaited: made by [`run_to_end`].
#[must_use = "nothing runs until this is awaited"]
pub struct RunToEnd<'a, F: Flow> {
    pool: &'a PgPool,
    state: &'a (dyn Any + Send + Sync),
    input: F::Input,
    concurrency: Option<usize>,
}

impl<F: Flow> RunToEnd<'_, F> {
    /// Sets the number of concurrent handlers: 1 to 10,000; 10 by default, as in a worker. With 1,
    /// tasks run in the order in which they became ready.
    pub fn concurrency(mut self, tasks: usize) -> Self {
        self.concurrency = Some(tasks);
        self
    }

    async fn run(self) -> Result<EndedRun<F>, RunToEndError> {
        let workers = TestWorkers::register::<F>(self.pool, self.concurrency).await?;
        let ended = self.with(&workers).await;
        workers.stop().await;
        let (run_id, attempts) = ended?;
        report(self.pool, run_id, attempts).await
    }

    async fn with(&self, workers: &TestWorkers) -> Result<(Uuid, Attempts), RunToEndError> {
        let run_id = F::start(self.pool, &self.input).await?;
        let driver = Driver {
            claims: Claims {
                pool: self.pool,
                run_id,
                definition: F::DEFINITION,
                workers,
            },
            handlers: &Borrowed::<F> {
                state: self.state,
                flow: PhantomData,
            },
        };
        match driver.run().await {
            Ok(attempts) => Ok((run_id, attempts)),
            // Whoever deletes a flow takes its queues and workers along: any call may be the first
            // to notice.
            Err(_) if matches!(run_status(self.pool, run_id).await, Ok(None)) => {
                Err(RunToEndError::RunGone { run_id })
            }
            Err(error) => Err(error),
        }
    }
}

impl<'a, F: Flow> IntoFuture for RunToEnd<'a, F>
where
    F::Output: Send,
{
    type Output = Result<EndedRun<F>, RunToEndError>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}

impl<F: Flow> fmt::Debug for RunToEnd<'_, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunToEnd")
            .field("flow", &F::DEFINITION.slug)
            .field("concurrency", &self.concurrency)
            .finish_non_exhaustive()
    }
}

async fn report<F: Flow>(
    pool: &PgPool,
    run_id: Uuid,
    attempts: Attempts,
) -> Result<EndedRun<F>, RunToEndError> {
    let unreadable = |source| match source {
        ClientError::NotFound { .. } => RunToEndError::RunGone { run_id },
        source => RunToEndError::Unreadable { run_id, source },
    };
    let run = Client::new(pool.clone()).run::<F>(run_id);
    let result = match run.wait().await {
        Err(RunError::NotFound { .. }) => return Err(RunToEndError::RunGone { run_id }),
        Err(RunError::Database { source, .. }) => {
            return Err(RunToEndError::Database { run_id, source });
        }
        result => result,
    };
    let snapshot = run.snapshot().await.map_err(unreadable)?;
    let rows = patiently(|| tasks(pool, run_id))
        .await
        .map_err(|error| unreadable(error.into()))?;
    Ok(EndedRun {
        result,
        tasks: task_reports::<F>(run_id, rows, attempts)?,
        snapshot,
    })
}

/// The tasks' rows with the attempts at them, in the order of the definition.
fn task_reports<F: Flow>(
    run_id: Uuid,
    rows: Vec<TaskRow>,
    mut attempts: Attempts,
) -> Result<Vec<TaskReport>, RunToEndError> {
    let mut reports = BTreeMap::new();
    for row in rows {
        let unknown = |what: &str| RunToEndError::Interrupted {
            run_id,
            reason: format!(
                "its task {} of step `{}` {what}",
                row.task_index, row.step_slug
            ),
        };
        let step = F::DEFINITION.step_index(&row.step_slug);
        let step = step.ok_or_else(|| unknown("is of another definition"))?;
        let status = TaskStatus::of(&row.status);
        let status = status.ok_or_else(|| unknown(&format!("is {}", row.status)))?;
        let own = attempts.remove(&(step, row.task_index)).unwrap_or_default();
        if usize::try_from(row.attempts_count) != Ok(own.len()) {
            return Err(RunToEndError::TakenByOthers {
                run_id,
                step: row.step_slug,
                task_index: row.task_index,
                attempts: row.attempts_count,
                own: own.len(),
            });
        }
        let report = TaskReport {
            step,
            step_slug: F::DEFINITION.steps[step].slug,
            task_index: row.task_index,
            status,
            error_message: row.error_message,
            attempts: own,
        };
        reports.insert((step, row.task_index), report);
    }
    Ok(reports.into_values().collect())
}
