//! Stop requests for the parts of a worker.

use std::{
    future::Future,
    sync::{Arc, Mutex, MutexGuard, OnceLock},
    time::Duration,
};

use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::WorkerError;
use crate::lock::lock;

/// Told once, seen by every part: stop claiming, and end within the shutdown timeout, counted from
/// now.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stop {
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    requested: CancellationToken,
    since: OnceLock<Instant>,
    fault: Mutex<Option<WorkerError>>,
    /// The reason of the database's stop request.
    deprecated: OnceLock<String>,
    /// A request to it is one to this, too.
    parent: Option<Stop>,
}

impl Stop {
    /// For one of several workers: asked to stop with all of them, or alone.
    pub(crate) fn child(&self) -> Self {
        Self {
            state: Arc::new(State {
                requested: self.child_token(),
                since: OnceLock::new(),
                fault: Mutex::default(),
                deprecated: OnceLock::new(),
                parent: Some(self.clone()),
            }),
        }
    }

    /// Asks for a graceful end.
    pub(crate) fn request(&self) {
        self.state.since.get_or_init(Instant::now);
        self.state.requested.cancel();
    }

    /// Asks for a graceful end because the database does.
    pub(crate) fn deprecate(&self, reason: &str) {
        self.state.deprecated.get_or_init(|| reason.to_owned());
        self.request();
    }

    /// Returns the reason why the database asked for an end, if it did.
    pub(crate) fn deprecated(&self) -> Option<&str> {
        self.state.deprecated.get().map(String::as_str)
    }

    /// Asks for a graceful end because the worker can't continue; the first fault is what the
    /// worker returns.
    pub(crate) fn fail(&self, fault: WorkerError) {
        self.fault().get_or_insert(fault);
        self.request();
    }

    pub(crate) fn is_requested(&self) -> bool {
        self.state.requested.is_cancelled()
    }

    pub(crate) async fn requested(&self) {
        self.state.requested.cancelled().await;
    }

    /// Cancelled when the worker is asked to stop; cancelling it does not stop the worker.
    pub(crate) fn child_token(&self) -> CancellationToken {
        self.state.requested.child_token()
    }

    /// Returns the deadline of the handlers; counted from now until a stop is requested.
    pub(crate) fn deadline(&self, timeout: Duration) -> Instant {
        self.since().unwrap_or_else(Instant::now) + timeout
    }

    fn since(&self) -> Option<Instant> {
        let parent = self.state.parent.as_ref().and_then(Self::since);
        let own = self.state.since.get().copied();
        own.into_iter().chain(parent).min()
    }

    /// The future's result, or None when it outlasts the deadline of a shutdown.
    pub(crate) async fn within<T>(
        &self,
        timeout: Duration,
        future: impl Future<Output = T>,
    ) -> Option<T> {
        let deadline_passed = async {
            self.requested().await;
            sleep_until(self.deadline(timeout)).await;
        };
        tokio::select! {
            biased;
            value = future => Some(value),
            () = deadline_passed => None,
        }
    }

    /// The future's result, or None when the worker is asked to stop before it comes.
    pub(crate) async fn unless_requested<T>(&self, future: impl Future<Output = T>) -> Option<T> {
        self.state.requested.run_until_cancelled(future).await
    }

    /// Returns the result of the worker.
    pub(crate) fn result(&self) -> Result<(), WorkerError> {
        self.fault().take().map_or(Ok(()), Err)
    }

    fn fault(&self) -> MutexGuard<'_, Option<WorkerError>> {
        lock(&self.state.fault)
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use tokio::time::sleep;

    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(30);

    #[tokio::test(start_paused = true)]
    async fn the_deadline_is_counted_from_the_first_request() {
        let stop = Stop::default();
        stop.request();
        let deadline = stop.deadline(TIMEOUT);
        sleep(Duration::from_secs(5)).await;
        stop.request();
        assert_eq!(stop.deadline(TIMEOUT), deadline);
    }

    #[tokio::test(start_paused = true)]
    async fn work_in_progress_may_last_until_the_deadline() {
        let stop = Stop::default();
        let start = Instant::now();
        stop.request();
        let short = stop.within(TIMEOUT, sleep(Duration::from_secs(29))).await;
        assert_eq!(short, Some(()));
        assert_eq!(stop.within(TIMEOUT, pending::<()>()).await, None);
        assert_eq!(start.elapsed().as_secs(), 30);
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_request_there_is_no_deadline() {
        let stop = Stop::default();
        let long = stop.within(TIMEOUT, sleep(Duration::from_hours(1))).await;
        assert_eq!(long, Some(()));
    }

    #[tokio::test]
    async fn the_first_fault_is_the_result() {
        let stop = Stop::default();
        stop.fail(WorkerError::Interrupted);
        stop.fail(WorkerError::UnsupportedWork {
            messages: Vec::new(),
        });
        assert!(stop.is_requested());
        assert!(matches!(stop.result(), Err(WorkerError::Interrupted)));
    }

    #[tokio::test]
    async fn a_handlers_token_does_not_stop_the_worker() {
        let stop = Stop::default();
        stop.child_token().cancel();
        assert!(!stop.is_requested());
        let token = stop.child_token();
        stop.request();
        assert!(token.is_cancelled());
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_to_all_reaches_each_and_counts_from_its_own_time() {
        let all = Stop::default();
        let (one, other) = (all.child(), all.child());
        one.request();
        let first = one.deadline(TIMEOUT);
        assert!(!all.is_requested() && !other.is_requested());
        sleep(Duration::from_secs(5)).await;
        all.request();
        sleep(Duration::from_secs(5)).await;
        assert!(other.is_requested());
        assert_eq!(one.deadline(TIMEOUT), first);
        assert_eq!(other.deadline(TIMEOUT), all.deadline(TIMEOUT));
        assert_eq!(other.deadline(TIMEOUT) - first, Duration::from_secs(5));
    }

    #[tokio::test]
    async fn a_fault_of_one_is_not_the_result_of_others() {
        let all = Stop::default();
        let (one, other) = (all.child(), all.child());
        one.fail(WorkerError::Interrupted);
        assert!(!all.is_requested() && !other.is_requested());
        assert!(one.result().is_err());
        assert!(all.result().is_ok() && other.result().is_ok());
    }
}
