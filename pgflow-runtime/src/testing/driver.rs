//! Carries one run to its end: claims, runs the handlers in the calling task, records.

use std::{collections::BTreeMap, future::Future, time::Duration};

use futures_util::{FutureExt, StreamExt, stream::FuturesUnordered};
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::{
    AttemptOutcome, AttemptReport, RunToEndError,
    claims::{Claims, PATIENCE, patiently},
};
use crate::{
    flow::Retry,
    inspect::StepExplanation,
    sql::{
        CallError,
        claim::ClaimedTask,
        error::ErrorClass,
        explain::explain_step,
        fail::Failure,
        retry::Backoff,
        testing::{Progress, progress, unfinished_step},
    },
    worker::{
        attempt::{self, Finished},
        handlers::Handlers,
        recorder::{Database, Recorder},
        wakeup::Wakeup,
    },
};

const HEARTBEAT: Duration = Duration::from_secs(5);
/// The pause between polls when there is nothing to do.
const PAUSE: Duration = Duration::from_millis(50);

/// The attempts at each task, by the step's index and the task's.
pub(super) type Attempts = BTreeMap<(usize, i32), Vec<AttemptReport>>;

pub(super) struct Driver<'a> {
    pub(super) claims: Claims<'a>,
    pub(super) handlers: &'a dyn Handlers,
}

impl Driver<'_> {
    /// Returns when the run has ended, and its end steps have; handlers of the run that still run
    /// at its end are dropped.
    pub(super) async fn run(&self) -> Result<Attempts, RunToEndError> {
        let mut attempts = Attempts::new();
        let mut running = FuturesUnordered::new();
        let mut idle_since: Option<Instant> = None;
        let mut beats = interval_at(Instant::now() + HEARTBEAT, HEARTBEAT);
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut has_ended = false;
        loop {
            match self.progress().await? {
                Progress::Started => {}
                Progress::EndSteps if has_ended => {}
                Progress::EndSteps => {
                    has_ended = true;
                    running.clear();
                }
                Progress::Over => return Ok(attempts),
            }
            let slots = self.claims.workers.concurrency - running.len();
            if slots > 0 {
                let claim = self.claims.claim(slots, running.is_empty());
                for task in claim.await.map_err(|error| self.failed(error))? {
                    if self.is_of_end_step(&task) && !has_ended {
                        has_ended = true;
                        running.clear();
                    }
                    running.push(self.attempt(task, &mut attempts)?);
                }
            }
            if running.is_empty() {
                self.wait(*idle_since.get_or_insert_with(Instant::now))
                    .await?;
                continue;
            }
            idle_since = None;
            let first = loop {
                tokio::select! {
                    biased;
                    finished = running.next() => break finished,
                    _ = beats.tick() => self.beat().await?,
                }
            };
            let mut ended: Vec<Finished> = first.into_iter().collect();
            // What ended at the same time makes room for one claim, as in a worker.
            while let Some(Some(finished)) = running.next().now_or_never() {
                ended.push(finished);
            }
            for finished in ended {
                self.record(finished, &mut attempts).await?;
            }
        }
    }

    async fn progress(&self) -> Result<Progress, RunToEndError> {
        let (pool, run_id) = (self.claims.pool, self.claims.run_id);
        let progress = patiently(|| progress(pool, run_id)).await;
        let progress = progress.map_err(|error| self.failed(error))?;
        progress.ok_or(RunToEndError::RunGone { run_id })
    }

    fn is_of_end_step(&self, task: &ClaimedTask) -> bool {
        let mut steps = self.claims.definition.steps.iter();
        steps.any(|step| step.slug == task.step_slug && step.runs_on.is_some())
    }

    /// The attempt to run, noted as one that nothing is known of yet.
    fn attempt(
        &self,
        task: ClaimedTask,
        attempts: &mut Attempts,
    ) -> Result<impl Future<Output = Finished> + use<'_>, RunToEndError> {
        let Claims {
            pool,
            run_id,
            definition,
            ..
        } = self.claims;
        let Some(step) = definition.step_index(&task.step_slug) else {
            let reason = format!("its flow has a step `{}` now", task.step_slug);
            return Err(RunToEndError::Interrupted { run_id, reason });
        };
        let of_task = attempts.entry((step, task.task_index)).or_default();
        of_task.push(AttemptReport {
            attempt: task.attempt,
            outcome: AttemptOutcome::Dropped,
        });
        let span = attempt::span(&task);
        let cancelled = CancellationToken::new();
        let build = self.handlers.build();
        Ok(attempt::run_with(self.handlers, build, pool, cancelled, step, task).instrument(span))
    }

    async fn record(
        &self,
        mut finished: Finished,
        attempts: &mut Attempts,
    ) -> Result<(), RunToEndError> {
        let recorder = Recorder::new(Database::new(self.claims.pool), Wakeup::default());
        let since = Instant::now();
        let mut backoff = Backoff::database();
        let mut refusals = 0;
        while let Err(error) = recorder.record(&mut finished, &mut refusals).await {
            if !(error.is_transient() || refusals > 0) || since.elapsed() >= PATIENCE {
                return Err(self.failed(error));
            }
            sleep(backoff.next_delay()).await;
        }
        let key = &finished.key;
        let step = self.claims.definition.step_index(key.step_slug);
        let of_task = step.and_then(|step| attempts.get_mut(&(step, key.task_index)));
        let noted = of_task
            .into_iter()
            .flatten()
            .find(|noted| noted.attempt == key.attempt);
        if let Some(noted) = noted {
            noted.outcome = match finished.result {
                Ok(_) => AttemptOutcome::Returned,
                Err(Failure {
                    message,
                    retry: Retry::Postponed(after),
                }) => AttemptOutcome::Postponed { message, after },
                Err(failure) => AttemptOutcome::Failed {
                    retry_after: failure.retry.delay(),
                    is_permanent: failure.retry.is_permanent(),
                    message: failure.message,
                },
            };
        }
        Ok(())
    }

    /// Nothing runs and nothing can be claimed, though the run has not ended: for a moment, while
    /// another session holds a row.
    async fn wait(&self, idle_since: Instant) -> Result<(), RunToEndError> {
        self.beat().await?;
        if idle_since.elapsed() < PATIENCE {
            sleep(PAUSE).await;
            return Ok(());
        }
        let explanation = self.explain().await.map_err(|error| self.failed(error))?;
        Err(RunToEndError::Stuck {
            run_id: self.claims.run_id,
            explanation,
        })
    }

    async fn explain(&self) -> Result<String, CallError> {
        let (pool, run_id) = (self.claims.pool, self.claims.run_id);
        let Some(step) = unfinished_step(pool, run_id).await? else {
            return Ok("every step has ended".to_owned());
        };
        let explanation: StepExplanation = explain_step(pool, run_id, &step).await?;
        Ok(format!("step `{step}`: {}", explanation.message))
    }

    /// Sends the heartbeats of the call's workers, and checks whether they may continue.
    async fn beat(&self) -> Result<(), RunToEndError> {
        let beat = patiently(|| self.claims.workers.beat()).await;
        match beat.map_err(|error| self.failed(error))? {
            None => Ok(()),
            Some(reason) => Err(RunToEndError::Interrupted {
                run_id: self.claims.run_id,
                reason,
            }),
        }
    }

    fn failed(&self, source: CallError) -> RunToEndError {
        let run_id = self.claims.run_id;
        if source.class() == ErrorClass::Gone {
            RunToEndError::RunGone { run_id }
        } else {
            RunToEndError::Database { run_id, source }
        }
    }
}
