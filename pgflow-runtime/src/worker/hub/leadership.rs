//! Who does the hub's work: one of its workers at a time, for as long as its runtime runs it.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::{
    sync::Notify,
    time::{sleep, timeout},
};
use tracing::debug;

use super::{Hub, heartbeat, line, looks, recovery};
use crate::lock::lock;

/// How often the leader shows that its runtime still runs it.
const SIGN_OF_LIFE: Duration = Duration::from_millis(250);
/// How long the others wait for such a sign: their runtimes may be others, which go on when the leader's stands still.
const PATIENCE: Duration = Duration::from_secs(1);

/// A lock that can be taken from a holder who shows no sign of life. Two leaders for a moment do no harm.
#[derive(Debug, Default)]
pub(super) struct Leadership {
    state: Mutex<State>,
    free: Notify,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct State {
    is_led: bool,
    /// One more for each leader.
    term: u64,
    signs_of_life: u64,
}

/// The right to lead, until it is dropped or taken away.
#[derive(Debug)]
pub(super) struct Lead<'a> {
    leadership: &'a Leadership,
    term: u64,
}

/// Leads whenever nobody else does.
pub(super) async fn attend(hub: Arc<Hub>) {
    loop {
        let lead = hub.leadership.take().await;
        let (line, requests) = line::new();
        tokio::select! {
            () = lead.until_lost() => debug!("another worker of this process leads"),
            () = line::run(&hub, requests, lead.is_first()) => {}
            () = heartbeat::run(&hub, &line) => {}
            () = recovery::run(&hub) => {}
            () = looks::run(&hub) => {}
        }
    }
}

impl Leadership {
    /// Returns when the caller leads.
    async fn take(&self) -> Lead<'_> {
        loop {
            let seen = self.seen();
            if let Some(lead) = self.take_if(|state| !state.is_led) {
                return lead;
            }
            // Also ends early when the leader gives up; dropped while it is told so, it passes that on.
            let is_silent = |state: &State| *state == seen;
            if timeout(PATIENCE, self.free.notified()).await.is_err() && is_silent(&self.seen()) {
                // When this runtime is also the leader's and stood still, the leader now gets its turn.
                sleep(SIGN_OF_LIFE).await;
                if let Some(lead) = self.take_if(is_silent) {
                    return lead;
                }
            }
        }
    }

    fn take_if(&self, may_take: impl FnOnce(&State) -> bool) -> Option<Lead<'_>> {
        let mut state = lock(&self.state);
        may_take(&state).then(|| {
            state.is_led = true;
            state.term += 1;
            Lead {
                leadership: self,
                term: state.term,
            }
        })
    }

    fn seen(&self) -> State {
        *lock(&self.state)
    }
}

impl Lead<'_> {
    /// Shows signs of life, until another has taken the lead.
    async fn until_lost(&self) {
        while self.show_life() {
            sleep(SIGN_OF_LIFE).await;
        }
    }

    fn show_life(&self) -> bool {
        let mut state = lock(&self.leadership.state);
        state.signs_of_life += 1;
        state.term == self.term
    }

    fn is_first(&self) -> bool {
        self.term == 1
    }
}

impl Drop for Lead<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.leadership.state);
        if state.term == self.term {
            state.is_led = false;
            drop(state);
            self.leadership.free.notify_one();
        }
    }
}

#[cfg(test)]
mod tests;
