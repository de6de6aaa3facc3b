//! The number of tasks that a worker claims beyond its free slots.
//!
//! During a claim fast handlers would be idle, and a claim costs the database nearly as much for
//! one task as for ten. So a worker claims ahead the tasks that its slots can start before the next
//! claim returns: many for handlers of microseconds, none for slow ones.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use super::executor::PATIENCE;

/// The most tasks that wait for a slot.
const MOST_AHEAD: usize = 200;
/// The most bytes of inputs up to which a claim keeps tasks that wait for a slot.
pub(crate) const AHEAD_BYTES: usize = 16 * 1024 * 1024;
/// One in so many: the weight of a new measurement in the mean.
const WEIGHT: u64 = 16;
const UNKNOWN: u64 = u64::MAX;

/// Running means of what handlers and claims take, and of the size of inputs.
#[derive(Debug)]
pub(crate) struct Pace {
    handler: Mean,
    claim: Mean,
    /// In bytes. Large ones count at once, small ones by and by.
    input: Mean,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            handler: Mean::new(),
            claim: Mean::new(),
            input: Mean::new(),
        }
    }
}

impl Pace {
    pub(crate) fn handler_took(&self, time: Duration) {
        self.handler.add(time);
    }

    pub(crate) fn claim_took(&self, time: Duration) {
        self.claim.add(time);
    }

    /// A claim brought so many tasks, whose inputs are so large together.
    pub(crate) fn claimed(&self, tasks: usize, bytes: usize) {
        if let Some(each) = bytes.checked_div(tasks) {
            let each = u64::try_from(each).unwrap_or(UNKNOWN - 1);
            self.input.add_amount(each);
            self.input.raise_to(each);
        }
    }

    /// A task waited so long for a slot that it was returned: handlers take longer than they did.
    pub(crate) fn waited_in_vain(&self, time: Duration) {
        self.handler.raise(time);
    }

    /// Returns the number of tasks that `slots` handlers begin during one claim, and before claimed
    /// tasks return to the queue.
    pub(crate) fn ahead(&self, slots: usize) -> usize {
        let (Some(handler), Some(claim)) = (self.handler.value(), self.claim.value()) else {
            return 0;
        };
        let side_by_side = u64::try_from(slots).unwrap_or(u64::MAX);
        let begun = side_by_side.saturating_mul(claim.min(nanos(PATIENCE))) / handler.max(1);
        let begun = usize::try_from(begun).unwrap_or(usize::MAX);
        begun.min(MOST_AHEAD).min(self.fit(slots))
    }

    /// Returns the number of tasks ahead, beside those for the slots, that fit into memory.
    fn fit(&self, slots: usize) -> usize {
        let each = self.input.value().unwrap_or_default().max(1);
        let all = AHEAD_BYTES / usize::try_from(each).unwrap_or(usize::MAX);
        all.saturating_sub(slots)
    }
}

#[derive(Debug)]
struct Mean(AtomicU64);

impl Mean {
    fn new() -> Self {
        Self(AtomicU64::new(UNKNOWN))
    }

    fn value(&self) -> Option<u64> {
        Some(self.0.load(Ordering::Relaxed)).filter(|&mean| mean != UNKNOWN)
    }

    fn add(&self, time: Duration) {
        self.add_amount(nanos(time));
    }

    fn add_amount(&self, new: u64) {
        self.update(|mean| match mean {
            None => new,
            Some(mean) if new > mean => mean + (new - mean) / WEIGHT,
            Some(mean) => mean - (mean - new) / WEIGHT,
        });
    }

    fn raise(&self, time: Duration) {
        self.raise_to(nanos(time));
    }

    fn raise_to(&self, amount: u64) {
        self.update(|mean| mean.unwrap_or_default().max(amount));
    }

    fn update(&self, next: impl Fn(Option<u64>) -> u64) {
        let next = |mean| Some(next(Some(mean).filter(|&mean| mean != UNKNOWN)));
        // Never refused: `next` has always an answer.
        let _ = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(UNKNOWN - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace(handler: Duration, claim: Duration) -> Pace {
        let pace = Pace::default();
        pace.handler_took(handler);
        pace.claim_took(claim);
        pace
    }

    #[test]
    fn nothing_is_claimed_ahead_before_both_are_known() {
        let pace = Pace::default();
        assert_eq!(pace.ahead(10), 0);
        pace.claim_took(Duration::from_millis(2));
        assert_eq!(pace.ahead(10), 0);
        pace.handler_took(Duration::from_millis(1));
        assert_eq!(pace.ahead(10), 20);
    }

    #[test]
    fn as_much_as_the_slots_begin_during_a_claim() {
        let claim = Duration::from_millis(2);
        assert_eq!(pace(Duration::from_secs(1), claim).ahead(10), 0);
        assert_eq!(pace(Duration::from_millis(21), claim).ahead(10), 0);
        assert_eq!(pace(Duration::from_millis(4), claim).ahead(10), 5);
        assert_eq!(pace(Duration::from_micros(10), claim).ahead(10), 200);
        assert_eq!(pace(Duration::ZERO, claim).ahead(10), 200);
    }

    #[test]
    fn no_more_is_claimed_ahead_than_may_wait_by_its_size() {
        let pace = pace(Duration::from_micros(10), Duration::from_millis(2));
        pace.claimed(10, 10 * 2 * 1024 * 1024);
        assert_eq!(pace.ahead(2), 6);
        assert_eq!(pace.ahead(10), 0);
        // It comes back with claims of small ones, and a claim without tasks says nothing.
        pace.claimed(0, 0);
        assert_eq!(pace.ahead(10), 0);
        for _ in 0..200 {
            pace.claimed(10, 100);
        }
        assert_eq!(pace.ahead(10), 200);
    }

    #[test]
    fn a_slow_handler_counts_by_its_share() {
        let pace = pace(Duration::from_micros(10), Duration::from_millis(2));
        pace.handler_took(Duration::from_secs(10));
        assert_eq!(pace.ahead(10), 0);
    }

    #[test]
    fn a_wait_in_vain_ends_it_and_fast_handlers_bring_it_back() {
        let pace = pace(Duration::from_micros(10), Duration::from_millis(2));
        pace.waited_in_vain(Duration::from_millis(50));
        assert_eq!(pace.ahead(10), 0);
        for _ in 0..100 {
            pace.handler_took(Duration::from_micros(10));
        }
        assert!(pace.ahead(10) > 10);
    }
}
