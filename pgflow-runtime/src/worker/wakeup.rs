//! Wakes a claimer that sleeps.

use std::{sync::Arc, time::Duration};

use futures_util::FutureExt;
use tokio::{sync::Notify, time::timeout};

use crate::sql::retry::jittered;

/// A hint that there may be tasks: never needed, because the claimer also polls, and never wrong, because it only leads to a claim.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wakeup {
    hint: Arc<Notify>,
}

impl Wakeup {
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
    async fn a_forgotten_hint_does_not_wake() {
        let wakeup = Wakeup::default();
        wakeup.wake();
        wakeup.forget();
        assert!(slept(&wakeup).await > Duration::ZERO);
    }
}
