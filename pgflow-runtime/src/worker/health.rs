//! The health of the workers of a process, for supervisors.

use std::{
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use uuid::Uuid;

use super::{
    clock::{self, Moment},
    shutdown::Stop,
};
use crate::{lock::lock, startup::Target};

/// The time for which handlers may keep all threads of their runtime, in milliseconds.
const STANDS_STILL: u64 = 10_000;
/// The age up to which the last answered heartbeat counts as recent: two may be missing.
const RECENT: u64 = 15_000;

/// The health of the workers of a process at one moment, from [`HealthCheck::check`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Health {
    /// False when the process should be replaced: for more than 10 s its handlers have blocked all
    /// threads of their runtime, or pgflow's own thread has stood still. An outage of the database
    /// does not make it false.
    pub is_live: bool,
    /// True when the process does its work: at least one worker serves, and each one that is not
    /// fenced is registered, had a heartbeat answered within the last 15 s, and could make its
    /// last claim.
    pub is_ready: bool,
    /// Each worker, in the order in which they are started.
    pub workers: Vec<WorkerHealth>,
}

/// The health of one worker.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkerHealth {
    /// The flow's slug.
    pub flow: &'static str,
    /// The step of a worker that serves one step only.
    pub step: Option<&'static str>,
    /// The id of the worker's row, while it is registered.
    pub worker_id: Option<Uuid>,
    /// The part of its life that it is in.
    pub state: WorkerState,
    /// The reason why it serves nothing, where there is one.
    pub reason: Option<String>,
    /// The age of its last heartbeat that was answered.
    pub last_heartbeat: Option<Duration>,
    /// See [`Health::is_live`].
    pub is_live: bool,
    /// See [`Health::is_ready`].
    pub is_ready: bool,
}

/// The part of its life that a worker is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WorkerState {
    /// It was not registered yet.
    Starting,
    /// It claims and runs tasks.
    Serving,
    /// It was asked to stop, and finishes what it runs.
    Draining,
    /// Its function is fenced for a deployment. It waits for the end of the fence.
    Fenced,
    /// Its function is disabled. It waits until that is enabled.
    Disabled,
    /// It has ended, and does not come back.
    Stopped,
}

/// Tells the health of workers, also before they have started: see
/// [`Workers::health`](super::Workers::health). Cheap to clone; asks no database.
#[derive(Debug, Clone, Default)]
pub struct HealthCheck {
    places: Arc<Mutex<Vec<Arc<Place>>>>,
}

impl HealthCheck {
    /// Returns the health of all workers now. No workers are live, and not ready.
    pub fn check(&self) -> Health {
        let places = lock(&self.places).clone();
        let now = clock::now();
        let workers: Vec<_> = places.iter().map(|place| place.health(now)).collect();
        let serves = |worker: &WorkerHealth| worker.state == WorkerState::Serving;
        let is_fenced = |worker: &WorkerHealth| worker.state == WorkerState::Fenced;
        Health {
            is_live: workers.iter().all(|worker| worker.is_live),
            is_ready: workers.iter().any(serves)
                && workers
                    .iter()
                    .all(|worker| worker.is_ready || is_fenced(worker)),
            workers,
        }
    }

    /// Adds a worker that is about to start.
    pub(crate) fn add(&self, target: Target) -> Arc<Place> {
        let place = Arc::new(Place {
            target,
            life: Mutex::new(Life::new(WorkerState::Starting)),
        });
        lock(&self.places).push(Arc::clone(&place));
        place
    }
}

/// A worker of a process, through all its registrations.
#[derive(Debug)]
pub(crate) struct Place {
    target: Target,
    life: Mutex<Life>,
}

#[derive(Debug)]
struct Life {
    state: WorkerState,
    reason: Option<String>,
    registered: Option<(Uuid, Stop, Arc<Vitals>)>,
}

impl Life {
    fn new(state: WorkerState) -> Self {
        Self {
            state,
            reason: None,
            registered: None,
        }
    }
}

impl Place {
    pub(crate) fn serves(&self, worker_id: Uuid, stop: Stop, vitals: Arc<Vitals>) {
        *self.life() = Life {
            registered: Some((worker_id, stop, vitals)),
            ..Life::new(WorkerState::Serving)
        };
    }

    pub(crate) fn is(&self, state: WorkerState, reason: Option<String>) {
        *self.life() = Life {
            reason,
            ..Life::new(state)
        };
    }

    fn life(&self) -> MutexGuard<'_, Life> {
        lock(&self.life)
    }

    fn health(&self, now: u64) -> WorkerHealth {
        let life = self.life();
        let mut health = WorkerHealth {
            flow: self.target.definition.slug,
            step: self.target.step_slug(),
            worker_id: None,
            state: life.state,
            reason: life.reason.clone(),
            last_heartbeat: None,
            is_live: true,
            is_ready: false,
        };
        if let Some((worker_id, stop, vitals)) = &life.registered {
            health.worker_id = Some(*worker_id);
            if stop.is_requested() {
                health.state = WorkerState::Draining;
            }
            health.last_heartbeat = vitals.last_heartbeat(now);
            health.is_live = vitals.is_live(now);
            health.is_ready = health.state == WorkerState::Serving && vitals.is_ready(now);
        }
        health
    }
}

/// The signs of life of a registered worker.
#[derive(Debug, Default)]
pub(crate) struct Vitals {
    /// The time at which the last answered heartbeat was sent.
    heartbeat: Moment,
    /// The time of the last check by pgflow's own thread.
    looked: Moment,
    /// Since when the runtime of the handlers has been asked to run a task, and has not.
    asked: Moment,
    /// Since when claims have failed.
    claims_fail: Moment,
}

impl Vitals {
    pub(crate) fn new(registered: u64) -> Self {
        Self {
            heartbeat: Moment::at(registered),
            looked: Moment::at(registered),
            ..Self::default()
        }
    }

    pub(crate) fn heartbeat_answered(&self, sent: u64) {
        self.heartbeat.set(sent);
    }

    pub(crate) fn looked_at(&self, now: u64, asked: Option<u64>) {
        self.looked.set(now);
        match asked {
            Some(asked) => self.asked.set(asked),
            None => self.asked.clear(),
        }
    }

    pub(crate) fn claimed(&self, is_ok: bool) {
        if is_ok {
            self.claims_fail.clear();
        } else if self.claims_fail.get().is_none() {
            self.claims_fail.set(clock::now());
        }
    }

    fn last_heartbeat(&self, now: u64) -> Option<Duration> {
        let age = now.saturating_sub(self.heartbeat.get()?);
        Some(Duration::from_millis(age))
    }

    fn is_live(&self, now: u64) -> bool {
        let is_recent =
            |moment: Option<u64>| moment.is_none_or(|at| now.saturating_sub(at) <= STANDS_STILL);
        is_recent(self.looked.get()) && is_recent(self.asked.get())
    }

    fn is_ready(&self, now: u64) -> bool {
        let is_recent = |at: u64| now.saturating_sub(at) <= RECENT;
        self.heartbeat.get().is_some_and(is_recent)
            && self.claims_fail.get().is_none()
            && self.is_live(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worker::testing::DEFINITION;

    fn place(check: &HealthCheck) -> Arc<Place> {
        check.add(Target {
            definition: &DEFINITION,
            step: None,
        })
    }

    fn serve(place: &Place) -> (Stop, Arc<Vitals>) {
        let (stop, vitals) = (Stop::default(), Arc::new(Vitals::new(clock::now())));
        place.serves(Uuid::nil(), stop.clone(), Arc::clone(&vitals));
        (stop, vitals)
    }

    #[test]
    fn a_process_is_ready_once_its_workers_serve_until_they_drain() {
        let check = HealthCheck::default();
        let place = place(&check);
        let health = check.check();
        assert!(health.is_live && !health.is_ready);
        let (stop, _) = serve(&place);
        assert!(check.check().is_ready);
        stop.request();
        let health = check.check();
        assert_eq!(health.workers[0].state, WorkerState::Draining);
        assert!(health.is_live && !health.is_ready);
    }

    #[test]
    fn failing_claims_make_it_unready_until_one_succeeds() {
        let check = HealthCheck::default();
        let (_stop, vitals) = serve(&place(&check));
        vitals.claimed(false);
        assert!(check.check().is_live && !check.check().is_ready);
        vitals.claimed(true);
        assert!(check.check().is_ready);
    }

    #[test]
    fn a_runtime_that_runs_nothing_for_long_is_not_live() {
        let vitals = Vitals::new(1000);
        vitals.looked_at(1500, Some(1500));
        assert!(vitals.is_live(1500 + STANDS_STILL));
        vitals.looked_at(12_000, Some(1500));
        assert!(!vitals.is_live(12_000));
        vitals.looked_at(12_500, None);
        assert!(vitals.is_live(12_500));
    }

    #[test]
    fn it_is_not_live_when_nobody_looks_any_more() {
        let vitals = Vitals::new(1000);
        assert!(vitals.is_live(1000 + STANDS_STILL));
        assert!(!vitals.is_live(1001 + STANDS_STILL));
    }

    #[test]
    fn one_that_is_fenced_leaves_the_process_ready_and_one_that_is_disabled_does_not() {
        let check = HealthCheck::default();
        let (_stop, _) = serve(&place(&check));
        let other = place(&check);
        other.is(WorkerState::Fenced, None);
        assert!(check.check().is_ready);
        other.is(WorkerState::Disabled, Some("a message".to_owned()));
        let health = check.check();
        assert!(!health.is_ready);
        assert_eq!(health.workers[1].reason.as_deref(), Some("a message"));
    }
}
