//! The times at which a run is polled without a hint.

use std::time::Duration;

use tokio::time::Instant;

/// The first look follows so soon.
const FIRST: Duration = Duration::from_millis(20);
/// The pause between polls while no notification arrives.
const LONGEST: Duration = Duration::from_millis(500);
/// The pause between looks while notifications come.
const RARE: Duration = Duration::from_secs(5);
/// The shortest interval that a caller can choose.
pub(crate) const SHORTEST: Duration = Duration::from_millis(10);

/// The interval at which a run is polled.
#[derive(Debug, Clone, Copy)]
pub(in crate::client) enum Pace {
    /// At an interval that the caller chose, notified or not.
    Every(Duration),
    /// Soon at first, then rarely.
    Default {
        /// The next pause.
        next: Duration,
    },
}

impl Default for Pace {
    fn default() -> Self {
        Self::Default { next: FIRST }
    }
}

impl Pace {
    /// At this interval, but not below the shortest.
    pub(in crate::client) fn every(interval: Duration) -> Self {
        Self::Every(interval.max(SHORTEST))
    }

    /// The pause before the next look.
    pub(super) fn next_pause(&mut self, is_notified: bool) -> Duration {
        match self {
            Self::Every(interval) => *interval,
            Self::Default { .. } if is_notified => RARE,
            Self::Default { next } => {
                let pause = *next;
                *next = pause.saturating_mul(2).min(LONGEST);
                pause
            }
        }
    }
}

/// The moments for looks that are so far apart, the same for all: so those who wait at one pace are
/// looked at together.
///
/// `None` when it is too far in the future to be represented.
pub(super) fn next_tick(epoch: Instant, now: Instant, pause: Duration) -> Option<Instant> {
    let elapsed = now.saturating_duration_since(epoch);
    let nanos = pause.as_nanos().max(1);
    let next = (elapsed.as_nanos() / nanos + 1).checked_mul(nanos)?;
    epoch.checked_add(Duration::from_nanos(u64::try_from(next).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_of_one_pace_fall_on_the_same_moments() {
        let epoch = Instant::now();
        let pause = Duration::from_millis(500);
        for after in [0, 1, 499] {
            let now = epoch + Duration::from_millis(after);
            assert_eq!(next_tick(epoch, now, pause), Some(epoch + pause));
        }
        assert_eq!(
            next_tick(epoch, epoch + pause, pause),
            Some(epoch + pause * 2)
        );
    }

    #[test]
    fn the_longest_interval_has_no_next_look_and_the_shortest_does_not_spin() {
        let now = Instant::now();
        for interval in [Duration::MAX, Duration::from_secs(u64::MAX / 1000)] {
            let pause = Pace::every(interval).next_pause(false);
            assert_eq!(next_tick(now, now, pause), None);
        }
        assert_eq!(Pace::every(Duration::ZERO).next_pause(true), SHORTEST);
    }

    #[test]
    fn by_default_looks_come_soon_at_first_and_rarely_while_notifications_come() {
        let mut pace = Pace::default();
        let pauses: Vec<_> = (0..7).map(|_| pace.next_pause(false).as_millis()).collect();
        assert_eq!(pauses, [20, 40, 80, 160, 320, 500, 500]);
        assert_eq!(pace.next_pause(true), RARE);
    }
}
