//! The delay before a call is repeated.

use std::time::Duration;

/// Delays that double from `first` to `longest`, each jittered.
#[derive(Debug, Clone)]
pub(crate) struct Backoff {
    first: Duration,
    longest: Duration,
    next: Duration,
}

impl Backoff {
    pub(crate) const fn new(first: Duration, longest: Duration) -> Self {
        Self {
            first,
            longest,
            next: first,
        }
    }

    /// For database calls that failed: 100 ms to 5 s.
    pub(crate) const fn database() -> Self {
        Self::new(Duration::from_millis(100), Duration::from_secs(5))
    }

    pub(crate) fn next_delay(&mut self) -> Duration {
        let delay = self.next;
        self.next = delay.saturating_mul(2).min(self.longest);
        jittered(delay).clamp(self.first, self.longest)
    }

    pub(crate) fn reset(&mut self) {
        self.next = self.first;
    }
}

/// `delay`, up to a fifth longer or shorter, so that processes that started together drift apart.
pub(crate) fn jittered(delay: Duration) -> Duration {
    delay.mul_f64(0.8 + 0.4 * fastrand::f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Duration = Duration::from_millis(100);
    const LONGEST: Duration = Duration::from_secs(5);

    #[test]
    fn delays_grow_to_the_longest_and_start_over_after_a_reset() {
        let mut backoff = Backoff::database();
        let delays: Vec<_> = (0..12).map(|_| backoff.next_delay()).collect();
        assert!(delays.iter().all(|delay| (FIRST..=LONGEST).contains(delay)));
        assert!(delays[0] <= FIRST.mul_f64(1.2));
        assert!(delays[11] >= LONGEST.mul_f64(0.8));
        backoff.reset();
        assert!(backoff.next_delay() <= FIRST.mul_f64(1.2));
    }

    #[test]
    fn jitter_stays_within_a_fifth() {
        for _ in 0..1000 {
            let delay = jittered(LONGEST);
            assert!(delay >= LONGEST.mul_f64(0.8) && delay <= LONGEST.mul_f64(1.2));
        }
    }
}
