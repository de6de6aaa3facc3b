//! Waits for the workers of a definition that a local database is about to replace.

use std::time::Duration;

use tokio::time::{Instant, sleep};
use tracing::info;

use super::StartupError;
use crate::{sql::definition::LiveWorker, worker::Stop};

/// The pause before the database is queried again.
const PAUSE: Duration = Duration::from_millis(500);
/// The shortest interval between log lines about the workers that are waited for.
const REMINDER: Duration = Duration::from_secs(5);

/// The workers that are waited for, and the reason.
#[derive(Debug)]
pub(super) struct Draining {
    pub(super) differences: Vec<String>,
    pub(super) workers: Vec<LiveWorker>,
}

/// One start's wait.
#[derive(Debug)]
pub(super) struct Wait {
    flow: &'static str,
    timeout: Duration,
    since: Instant,
    last_said: Option<Instant>,
}

impl Wait {
    pub(super) fn new(flow: &'static str, timeout: Duration) -> Self {
        Self {
            flow,
            timeout,
            since: Instant::now(),
            last_said: None,
        }
    }

    /// Returns when it is time to ask again.
    pub(super) async fn pause(
        &mut self,
        draining: Draining,
        stop: &Stop,
    ) -> Result<(), StartupError> {
        let waited = self.since.elapsed();
        let Some(left) = self
            .timeout
            .checked_sub(waited)
            .filter(|left| !left.is_zero())
        else {
            return Err(StartupError::DrainTimeout {
                flow: self.flow.to_owned(),
                differences: draining.differences,
                waited,
                workers: draining.workers,
            });
        };
        self.say(&draining, left);
        stop.unless_requested(sleep(PAUSE.min(left)))
            .await
            .ok_or(StartupError::ShutDown)
    }

    fn say(&mut self, draining: &Draining, left: Duration) {
        if self.last_said.is_some_and(|last| last.elapsed() < REMINDER) {
            return;
        }
        self.last_said = Some(Instant::now());
        let workers: Vec<String> = draining.workers.iter().map(ToString::to_string).collect();
        info!(
            flow = self.flow,
            seconds_left = left.as_secs(),
            workers = workers.join("; "),
            "the local database has another definition of the flow; waiting for the workers that run it to stop"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draining() -> Draining {
        let worker = serde_json::json!({
            "worker_id": "00000000-0000-0000-0000-000000000007",
            "function_name": "audit",
            "step_slug": "parse",
            "last_heartbeat_at": "2026-01-02T03:04:05.678+00:00",
            "started_tasks": 1,
        });
        Draining {
            differences: vec!["step \"parse\" is missing".to_owned()],
            workers: vec![serde_json::from_value(worker).expect("a worker")],
        }
    }

    #[tokio::test(start_paused = true)]
    async fn it_asks_twice_a_second_until_the_time_is_over_and_then_names_who_lives() {
        let mut wait = Wait::new("audit", Duration::from_millis(1200));
        let stop = Stop::default();
        let mut asked = Vec::new();
        let error = loop {
            asked.push(wait.since.elapsed().as_millis());
            if let Err(error) = wait.pause(draining(), &stop).await {
                break error;
            }
        };
        assert_eq!(asked, [0, 500, 1000, 1200]);
        assert_eq!(
            error.to_string(),
            "the local database has another definition of flow `audit`:\n  step \"parse\" is missing\n\
             it is replaced once no worker runs it; after 1.2s these still live:\n  \
             worker 00000000-0000-0000-0000-000000000007 of function `audit`, step `parse`: 1 task started, \
             last heartbeat at 2026-01-02 03:04:05 UTC\n\
             stop them and start again, or raise `drain_timeout`; nothing was deleted"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_timeout_of_zero_does_not_wait() {
        let mut wait = Wait::new("audit", Duration::ZERO);
        let error = wait.pause(draining(), &Stop::default()).await;
        assert!(matches!(error, Err(StartupError::DrainTimeout { .. })));
        assert_eq!(wait.since.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_to_stop_ends_the_wait() {
        let mut wait = Wait::new("audit", Duration::from_mins(1));
        let stop = Stop::default();
        let asker = stop.clone();
        tokio::spawn(async move {
            sleep(Duration::from_millis(100)).await;
            asker.request();
        });
        let error = wait.pause(draining(), &stop).await;
        assert!(matches!(error, Err(StartupError::ShutDown)));
        assert_eq!(wait.since.elapsed().as_millis(), 100);
    }

    #[tokio::test(start_paused = true)]
    async fn it_says_at_once_and_then_every_five_seconds_whom_it_waits_for() {
        let mut wait = Wait::new("audit", Duration::from_mins(1));
        let stop = Stop::default();
        let mut said = Vec::new();
        for _ in 0..22 {
            wait.pause(draining(), &stop).await.expect("there is time");
            let last = wait.last_said.expect("it has said something");
            said.push((last - wait.since).as_secs());
        }
        said.dedup();
        assert_eq!(said, [0, 5, 10]);
    }
}
