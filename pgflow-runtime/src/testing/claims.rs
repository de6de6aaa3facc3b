//! Takes the tasks of one run, and no others, off their queues.

use std::{future::Future, time::Duration};

use chrono::TimeDelta;
use pgflow_definition::FlowDefinition;
use sqlx::PgPool;
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::workers::TestWorkers;
use crate::sql::{
    CallError,
    claim::ClaimedTask,
    retry::Backoff,
    testing::{WaitingTask, start_tasks, waiting_tasks},
};

/// The longest wait for an unreachable database, or for a row that another session holds.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);
/// Delays are whole seconds: what would be due within one of the next task is due with it.
const TOGETHER: TimeDelta = TimeDelta::seconds(1);

/// The tasks of one run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Claims<'a> {
    pub(super) pool: &'a PgPool,
    pub(super) run_id: Uuid,
    pub(super) definition: &'static FlowDefinition<'static>,
    pub(super) workers: &'a TestWorkers,
}

impl Claims<'_> {
    /// Starts up to so many tasks: those that are due; or, when none is and nothing runs that could
    /// make one so, those that will be next. Their delay is over then, as if time had passed.
    pub(super) async fn claim(
        self,
        slots: usize,
        nothing_runs: bool,
    ) -> Result<Vec<ClaimedTask>, CallError> {
        let queues: Vec<&str> = self
            .workers
            .queues()
            .iter()
            .map(|worker| worker.queue_name.as_str())
            .collect();
        let mut waiting =
            patiently(|| waiting_tasks(self.pool, self.run_id, &queues, slots)).await?;
        let due = waiting.partition_point(|task| task.is_due);
        let taken = match waiting.first() {
            Some(next) if due == 0 && nothing_runs => {
                let together = next.visible_at + TOGETHER;
                waiting.partition_point(|task| task.visible_at <= together)
            }
            _ => due,
        };
        waiting.truncate(taken);

        let mut claimed = Vec::with_capacity(taken);
        for worker in self.workers.queues() {
            let of_queue: Vec<WaitingTask> = waiting
                .extract_if(.., |task| task.queue_name == worker.queue_name)
                .collect();
            if of_queue.is_empty() {
                continue;
            }
            let started = patiently(|| {
                start_tasks(
                    self.pool,
                    worker.id(),
                    self.definition.slug,
                    worker.step_slug,
                    &worker.queue_name,
                    &of_queue,
                )
            });
            claimed.extend(started.await?);
        }
        Ok(claimed)
    }
}

/// Repeats a call that fails for a reason that passes.
pub(super) async fn patiently<T, Call>(mut call: impl FnMut() -> Call) -> Result<T, CallError>
where
    Call: Future<Output = Result<T, CallError>>,
{
    let since = Instant::now();
    let mut backoff = Backoff::database();
    loop {
        match call().await {
            Err(error) if error.is_transient() && since.elapsed() < PATIENCE => {
                sleep(backoff.next_delay()).await;
            }
            result => return result,
        }
    }
}
