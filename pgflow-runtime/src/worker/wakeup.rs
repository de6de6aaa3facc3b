//! Wakes a claimer that sleeps.

use std::{
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

use futures_util::FutureExt;
use tokio::{sync::Notify, time::timeout};

use crate::sql::retry::jittered;

/// A hint that there may be tasks: never needed, because the claimer also polls, and never wrong, because it only leads to a claim.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wakeup {
    hint: Arc<Notify>,
}

/// The claimers of this process, with the flow that each serves.
static CLAIMERS: Mutex<Vec<(&'static str, Weak<Notify>)>> = Mutex::new(Vec::new());

/// Wakes the claimers of this process that serve a flow, on whichever database: a run of it was started here.
pub(crate) fn wake_flow(flow: &str) {
    // A list is as good as it was before a panic; nothing under this lock panics anyway.
    let claimers = CLAIMERS.lock().unwrap_or_else(PoisonError::into_inner);
    let of_flow = claimers.iter().filter(|(served, _)| *served == flow);
    for hint in of_flow.filter_map(|(_, hint)| hint.upgrade()) {
        hint.notify_one();
    }
}

impl Wakeup {
    /// One that [`wake_flow`] reaches.
    pub(crate) fn of_flow(flow: &'static str) -> Self {
        let wakeup = Self::default();
        let mut claimers = CLAIMERS.lock().unwrap_or_else(PoisonError::into_inner);
        claimers.retain(|(_, hint)| hint.strong_count() > 0);
        claimers.push((flow, Arc::downgrade(&wakeup.hint)));
        wakeup
    }

    /// Wakes the claimer, or keeps it from falling asleep the next time.
    pub(crate) fn wake(&self) {
        self.hint.notify_one();
    }

    /// Forgets a hint that came before now: the claim that follows answers it.
    pub(crate) fn forget(&self) {
        // Polling once takes the stored permit, if there is one.
        let _ = self.hint.notified().now_or_never();
    }

    /// Sleeps until a hint comes, or for the poll interval, jittered.
    pub(crate) async fn sleep(&self, poll_interval: Duration) {
        // Both ways to wake up lead to a claim.
        let _ = timeout(jittered(poll_interval), self.hint.notified()).await;
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    const POLL: Duration = Duration::from_secs(1);

    async fn slept(wakeup: &Wakeup) -> Duration {
        let start = Instant::now();
        wakeup.sleep(POLL).await;
        start.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_hint_sleep_lasts_the_jittered_poll_interval() {
        let slept = slept(&Wakeup::default()).await;
        assert!(slept >= POLL.mul_f64(0.79) && slept <= POLL.mul_f64(1.21));
    }

    #[tokio::test(start_paused = true)]
    async fn a_hint_ends_the_sleep() {
        let wakeup = Wakeup::default();
        let waker = wakeup.clone();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(100)).await;
            waker.wake();
        });
        assert_eq!(slept(&wakeup).await.as_millis(), 100);
    }

    #[tokio::test(start_paused = true)]
    async fn a_hint_that_came_while_awake_is_kept() {
        let wakeup = Wakeup::default();
        wakeup.wake();
        wakeup.wake();
        assert_eq!(slept(&wakeup).await, Duration::ZERO);
        assert!(
            slept(&wakeup).await > Duration::ZERO,
            "one hint, however often it was given"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_started_run_wakes_the_claimers_of_its_flow() {
        let (first, second) = (Wakeup::of_flow("started"), Wakeup::of_flow("started"));
        let other = Wakeup::of_flow("not_started");
        drop(Wakeup::of_flow("started"));
        wake_flow("started");
        assert_eq!(slept(&first).await, Duration::ZERO);
        assert_eq!(slept(&second).await, Duration::ZERO);
        assert!(slept(&other).await > Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn a_forgotten_hint_does_not_wake() {
        let wakeup = Wakeup::default();
        wakeup.wake();
        wakeup.forget();
        assert!(slept(&wakeup).await > Duration::ZERO);
    }
}
