//! Wakes claimers that sleep.

use std::{
    sync::{
        Arc, Mutex, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures_util::FutureExt;
use pgflow_definition::FlowDefinition;
use tokio::{
    sync::Notify,
    time::{Instant, timeout_at},
};

use crate::{lock::lock, sql::retry::jittered, startup::Target};

/// The database notifies once per queue and 20 ms. The claimer polls again this long after a
/// notification, and finds tasks that were committed meanwhile; a transaction that was about to
/// commit may need a moment more.
const LOOK_AGAIN: [Duration; 2] = [Duration::from_millis(30), Duration::from_millis(75)];

/// A hint that there may be tasks: never needed, because the claimer also polls, and never wrong,
/// because it only leads to a claim.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wakeup {
    hint: Arc<Hint>,
    reach: Reach,
}

#[derive(Debug, Default)]
struct Hint {
    notify: Notify,
    /// The hint came from the database, which leaves some out.
    announced: AtomicBool,
    idle: Mutex<Idle>,
}

/// Since when a claimer has nothing to do.
#[derive(Debug, Default)]
struct Idle {
    asleep_since: Option<Instant>,
    /// The time at which another task polled for it and found nothing.
    looked_at: Option<Instant>,
}

/// The workers that a worker's results concern, because they make tasks ready.
#[derive(Debug, Clone, Default)]
enum Reach {
    #[default]
    Itself,
    Flow(&'static str),
    /// Workers of other steps: those that come after the worker's own, which gets no tasks by its
    /// own results.
    Steps(&'static str, Arc<[usize]>),
}

/// A claimer of this process, on whichever database, and what it serves.
#[derive(Debug)]
struct Claimer {
    flow: &'static str,
    step: Option<usize>,
    hint: Weak<Hint>,
}

static CLAIMERS: Mutex<Vec<Claimer>> = Mutex::new(Vec::new());

/// Wakes the claimers of a flow: a run of it was started here.
pub(crate) fn wake_flow(flow: &str) {
    wake(|claimer| claimer.flow == flow);
}

/// Wakes every claimer: tasks of any flow were put back into their queues.
pub(crate) fn wake_all() {
    wake(|_| true);
}

fn wake(is_meant: impl Fn(&Claimer) -> bool) {
    let claimers = lock(&CLAIMERS);
    let meant = claimers.iter().filter(|claimer| is_meant(claimer));
    for hint in meant.filter_map(|claimer| claimer.hint.upgrade()) {
        hint.notify.notify_one();
    }
}

impl Wakeup {
    /// One that other workers of this process reach.
    pub(crate) fn of(target: Target) -> Self {
        let Target { definition, step } = target;
        let wakeup = Self {
            hint: Arc::default(),
            reach: match step {
                None => Reach::Flow(definition.slug),
                Some(step) => Reach::Steps(definition.slug, after(definition, step)),
            },
        };
        let mut claimers = lock(&CLAIMERS);
        claimers.retain(|claimer| claimer.hint.strong_count() > 0);
        claimers.push(Claimer {
            flow: definition.slug,
            step,
            hint: Arc::downgrade(&wakeup.hint),
        });
        wakeup
    }

    /// Wakes the claimers, of this worker and others, that tasks may be for which a result of this
    /// worker made ready; keeps one that is awake from falling asleep the next time.
    pub(crate) fn wake_for_ready(&self) {
        match &self.reach {
            Reach::Itself => self.hint.notify.notify_one(),
            Reach::Flow(flow) => wake_flow(flow),
            Reach::Steps(flow, steps) => wake(|claimer| {
                claimer.flow == *flow && claimer.step.is_none_or(|step| steps.contains(&step))
            }),
        }
    }

    /// Wakes this worker's claimer.
    pub(crate) fn wake(&self) {
        self.hint.notify.notify_one();
    }

    /// The claimer need not poll on its own: another task did at that time, and found nothing.
    pub(crate) fn looked(&self, at: Instant) {
        lock(&self.hint.idle).looked_at = Some(at);
    }

    /// Returns the time since which there is nothing to do; none while the claimer is awake.
    pub(crate) fn idle_since(&self) -> Option<Instant> {
        let idle = lock(&self.hint.idle);
        idle.asleep_since
            .map(|since| idle.looked_at.map_or(since, |at| at.max(since)))
    }

    /// Wakes this worker's claimer because the database says that there are tasks, or may have said
    /// so.
    pub(crate) fn announce(&self) {
        self.hint.announced.store(true, Ordering::Release);
        self.hint.notify.notify_one();
    }
}

/// One claimer's own view of the hints that it gets.
#[derive(Debug)]
pub(crate) struct Sleeper<'a> {
    wakeup: &'a Wakeup,
    poll_interval: Duration,
    /// The time at which the claimer last answered hints.
    answered_at: Instant,
    /// The time at which it last answered a hint of the database.
    announced_at: Option<Instant>,
}

impl<'a> Sleeper<'a> {
    pub(crate) fn new(wakeup: &'a Wakeup, poll_interval: Duration) -> Self {
        Self {
            wakeup,
            poll_interval,
            answered_at: Instant::now(),
            announced_at: None,
        }
    }

    /// Forgets the hints that came before now: the claim that follows answers them.
    pub(crate) fn forget(&mut self) {
        self.answered_at = Instant::now();
        let hint = &self.wakeup.hint;
        // Polling once takes the stored permit, if there is one.
        let _ = hint.notify.notified().now_or_never();
        if hint.announced.swap(false, Ordering::AcqRel) {
            self.announced_at = Some(self.answered_at);
        }
    }

    /// Sleeps until a hint arrives, or it is time to poll without one: after the poll interval,
    /// jittered, or soon after a notification. Polls by another task postpone it.
    pub(crate) async fn sleep(&self) {
        let hint = &self.wakeup.hint;
        let asleep = Asleep::new(hint);
        let mut poll = asleep.since + jittered(self.poll_interval);
        loop {
            let until = self.next_look().map_or(poll, |at| at.min(poll));
            // Both ways to wake up lead to a claim.
            if timeout_at(until, hint.notify.notified()).await.is_ok() || until < poll {
                return;
            }
            match lock(&hint.idle).looked_at {
                Some(at) if at + self.poll_interval > poll => poll = at + self.poll_interval,
                _ => return,
            }
        }
    }

    /// One whose time came during the last claim is due: the claim may not have seen what it is
    /// for.
    fn next_look(&self) -> Option<Instant> {
        let announced_at = self.announced_at?;
        LOOK_AGAIN
            .iter()
            .map(|&after| announced_at + after)
            .find(|&at| at > self.answered_at)
    }
}

/// A claimer that sleeps, until this is dropped.
struct Asleep<'a> {
    hint: &'a Hint,
    since: Instant,
}

impl<'a> Asleep<'a> {
    fn new(hint: &'a Hint) -> Self {
        let since = Instant::now();
        *lock(&hint.idle) = Idle {
            asleep_since: Some(since),
            looked_at: None,
        };
        Self { hint, since }
    }
}

impl Drop for Asleep<'_> {
    fn drop(&mut self) {
        lock(&self.hint.idle).asleep_since = None;
    }
}

/// The steps that wait for this one, also by way of others: one in between may be skipped, or have
/// no tasks.
fn after(definition: &FlowDefinition<'_>, step: usize) -> Arc<[usize]> {
    let steps = definition.steps;
    let mut found: Vec<usize> = Vec::new();
    // Each step stands after all that it depends on.
    for (index, candidate) in steps.iter().enumerate().skip(step + 1) {
        let waits_for = |other: usize| candidate.depends_on.contains(&steps[other].slug);
        if waits_for(step) || found.iter().any(|&other| waits_for(other)) {
            found.push(index);
        }
    }
    found.into()
}

#[cfg(test)]
mod tests;
