//! The disturbances and their times: decided by the seed.

use std::time::Duration;

/// The possible disturbances.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    /// SIGKILL for a worker.
    Kill,
    /// SIGTERM for a worker.
    Terminate,
    /// SIGSTOP for a worker, and SIGCONT later.
    Freeze,
    /// Every connection is closed.
    Cut,
    /// Every connection is closed after the server got requests whose answers did not get through.
    LoseAnswers,
    /// Nothing gets through for a while.
    Stall,
    /// Every connection is closed, and new ones are for a while.
    Refuse,
    /// The server stops in immediate mode and starts again.
    Crash,
    /// The process of one session is killed, upon which the server ends all others and recovers.
    CrashSession,
}

use Event::{Crash, CrashSession, Cut, Freeze, Kill, LoseAnswers, Refuse, Stall, Terminate};

/// The number of times that each happens before all have.
const DECK: [Event; 14] = [
    Kill,
    Kill,
    Kill,
    Kill,
    Terminate,
    Terminate,
    Freeze,
    Cut,
    LoseAnswers,
    LoseAnswers,
    Stall,
    Refuse,
    Crash,
    CrashSession,
];

/// Decks of events, shuffled, one after the other.
#[derive(Debug)]
pub(crate) struct Schedule {
    pub(crate) rng: fastrand::Rng,
    deck: Vec<Event>,
}

impl Schedule {
    pub(crate) fn new(seed: u64) -> Self {
        let mut schedule = Self {
            rng: fastrand::Rng::with_seed(seed),
            deck: Vec::new(),
        };
        schedule.shuffle();
        schedule
    }

    /// Returns whether everything has happened as often as everything else.
    pub(crate) fn is_at_an_end_of_a_deck(&self) -> bool {
        self.deck.is_empty()
    }

    /// Returns the time without a disturbance, and the next one.
    pub(crate) fn next(&mut self) -> (Duration, Event) {
        if self.deck.is_empty() {
            self.shuffle();
        }
        let event = self.deck.pop().expect("a shuffled deck is full");
        (self.millis(100, 1000), event)
    }

    pub(crate) fn millis(&mut self, least: u64, most: u64) -> Duration {
        Duration::from_millis(self.rng.u64(least..=most))
    }

    fn shuffle(&mut self) {
        self.deck = DECK.to_vec();
        self.rng.shuffle(&mut self.deck);
    }
}
