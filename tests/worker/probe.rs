//! The probe that handlers of test flows report to, and at which they wait until the test releases
//! them.

use std::sync::{Arc, Mutex};

use tokio::sync::Semaphore;

use super::DEADLINE;
use crate::support::eventually;

#[derive(Debug, Clone)]
pub(crate) struct Probe {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    entered: Mutex<Vec<String>>,
    gate: Semaphore,
}

impl Probe {
    /// A probe whose gate is closed.
    pub(crate) fn closed() -> Self {
        Self {
            inner: Arc::new(Inner {
                entered: Mutex::default(),
                gate: Semaphore::new(0),
            }),
        }
    }

    /// A probe that only listens.
    pub(crate) fn open() -> Self {
        let probe = Self::closed();
        probe.let_all_go();
        probe
    }

    /// Called by handlers: reports, then waits until the gate lets it through.
    pub(crate) async fn pass(&self, what: impl Into<String>) {
        self.note(what);
        let permit = self.inner.gate.acquire().await;
        permit.expect("the gate is never removed").forget();
    }

    pub(crate) fn note(&self, what: impl Into<String>) {
        let mut entered = self.inner.entered.lock().expect("no panic while noting");
        entered.push(what.into());
    }

    pub(crate) fn let_all_go(&self) {
        self.let_go(1_000_000);
    }

    pub(crate) fn let_go(&self, count: usize) {
        self.inner.gate.add_permits(count);
    }

    /// Returns the reports, sorted.
    pub(crate) fn seen(&self) -> Vec<String> {
        let mut entered = self.seen_in_order();
        entered.sort();
        entered
    }

    pub(crate) fn seen_in_order(&self) -> Vec<String> {
        let entered = self.inner.entered.lock().expect("no panic while noting");
        entered.clone()
    }

    pub(crate) async fn until_seen(&self, what: &str) {
        self.until(&format!("a handler reports {what:?}"), |seen| {
            seen.iter().any(|seen| seen == what)
        })
        .await;
    }

    pub(crate) async fn until_count(&self, count: usize) {
        self.until(&format!("{count} reports"), |seen| seen.len() >= count)
            .await;
    }

    async fn until(&self, what: &str, is_there: impl Fn(&[String]) -> bool) {
        eventually(DEADLINE, what, async || {
            is_there(&self.seen()).then_some(())
        })
        .await;
    }
}
