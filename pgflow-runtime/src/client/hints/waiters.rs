//! The waiters of each run, the state that each has seen, and the time of the next poll.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
    time::Duration,
};

use tokio::{sync::Notify, time::Instant};
use uuid::Uuid;

use super::{
    Event, Pace,
    attendance::{Attendant, Wanted},
    schedule::next_tick,
};
use crate::sql::CallError;

/// The longest delay of a notification after a poll has already found its change.
const LATE: Duration = Duration::from_secs(1);

/// The subject of a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::client) enum Hears {
    /// The end of the run only: earlier events wake no such waiter.
    TheEnd,
    /// All that happens to the run and to its steps.
    Everything,
}

/// The part of a run that shows whether it has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::client) enum Sight {
    Missing,
    Run {
        is_ended: bool,
        /// One for each step that has started, two for each that has ended. Not for those who wait
        /// for the end only.
        phases: i64,
        /// The tasks of all steps that have not completed. Not for those who wait for the end only.
        remaining: i64,
    },
}

impl Sight {
    /// For who waits for the end only.
    pub(in crate::client) const STARTED: Self = Self::of_end(false);
    pub(super) const ENDED: Self = Self::of_end(true);

    const fn of_end(is_ended: bool) -> Self {
        Self::Run {
            is_ended,
            phases: 0,
            remaining: 0,
        }
    }
}

/// The reason to wake a waiter.
#[derive(Debug)]
pub(in crate::client) enum News {
    /// The run has changed, or may have.
    Look,
    /// The run could not be looked at.
    Failed(Arc<CallError>),
    /// It could again, and has not changed.
    Recovered,
}

#[derive(Debug)]
pub(super) struct Entry {
    run_id: Uuid,
    hears: Hears,
    pace: Pace,
    listens: bool,
    bell: Arc<Notify>,
    news: Option<News>,
    /// The last look of any kind; none before the first that succeeded.
    seen: Option<Sight>,
    is_asleep: bool,
    is_failing: bool,
    due: Option<Instant>,
}

impl Entry {
    pub(super) fn new(
        run_id: Uuid,
        hears: Hears,
        pace: Pace,
        listens: bool,
        bell: Arc<Notify>,
    ) -> Self {
        Self {
            run_id,
            hears,
            pace,
            listens,
            bell,
            news: None,
            seen: None,
            is_asleep: false,
            is_failing: false,
            due: None,
        }
    }
}

/// Those who are to be looked for, by what they want to see.
#[derive(Debug, Default)]
pub(super) struct Batch {
    ids: Vec<u64>,
    pub(super) ends: BTreeSet<Uuid>,
    pub(super) states: BTreeSet<Uuid>,
}

/// The results of a poll, by run.
#[derive(Debug, Default)]
pub(super) struct Sights {
    pub(super) ends: HashMap<Uuid, Sight>,
    pub(super) states: HashMap<Uuid, Sight>,
}

#[derive(Debug)]
pub(super) struct Waiters {
    epoch: Instant,
    entries: HashMap<u64, Entry>,
    by_run: BTreeSet<(Uuid, u64)>,
    by_due: BTreeSet<(Instant, u64)>,
    listeners: usize,
    next_id: u64,
    pub(super) attendant: Attendant,
    /// Notifications of ends come.
    tells_ends: bool,
    /// Those of everything else, too.
    tells_all: bool,
    /// Ends that a poll found without a notification, and when.
    untold: HashMap<Uuid, Instant>,
}

impl Waiters {
    pub(super) fn new(epoch: Instant) -> Self {
        Self {
            epoch,
            entries: HashMap::new(),
            by_run: BTreeSet::new(),
            by_due: BTreeSet::new(),
            listeners: 0,
            next_id: 0,
            attendant: Attendant::default(),
            tells_ends: false,
            tells_all: false,
            untold: HashMap::new(),
        }
    }

    pub(super) fn add(&mut self, entry: Entry) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        self.by_run.insert((entry.run_id, id));
        self.listeners += usize::from(entry.listens);
        self.entries.insert(id, entry);
        id
    }

    /// Returns the entry, to be dropped without the lock.
    pub(super) fn remove(&mut self, id: u64) -> Option<Entry> {
        self.wake_up(id);
        let entry = self.entries.remove(&id)?;
        self.by_run.remove(&(entry.run_id, id));
        self.listeners -= usize::from(entry.listens);
        Some(entry)
    }

    pub(super) fn wanted(&self) -> Wanted {
        Wanted {
            is_waited: !self.entries.is_empty(),
            is_listened: self.listeners > 0,
        }
    }

    pub(super) fn saw(&mut self, id: u64, sight: Sight) {
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.seen = Some(sight);
            entry.is_failing = false;
        }
    }

    pub(super) fn take_news(&mut self, id: u64) -> Option<News> {
        self.entries.get_mut(&id)?.news.take()
    }

    /// Returns whether the waiter's look is the next one of all.
    pub(super) fn fall_asleep(&mut self, id: u64, now: Instant) -> bool {
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.is_asleep = true;
        }
        self.schedule(id, now);
        self.by_due.first().is_some_and(|&(_, first)| first == id)
    }

    pub(super) fn wake_up(&mut self, id: u64) {
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.is_asleep = false;
            if let Some(due) = entry.due.take() {
                self.by_due.remove(&(due, id));
            }
        }
    }

    fn schedule(&mut self, id: u64, now: Instant) {
        let Some(entry) = self.entries.get_mut(&id) else {
            return;
        };
        let is_told = match entry.hears {
            Hears::TheEnd => self.tells_ends,
            Hears::Everything => self.tells_all,
        };
        let pause = entry.pace.next_pause(entry.listens && is_told);
        let due = next_tick(self.epoch, now, pause);
        self.set_due(id, due);
    }

    fn set_due(&mut self, id: u64, due: Option<Instant>) {
        let Some(entry) = self.entries.get_mut(&id) else {
            return;
        };
        if let Some(due) = entry.due.take() {
            self.by_due.remove(&(due, id));
        }
        if let Some(due) = due.filter(|_| entry.is_asleep) {
            entry.due = Some(due);
            self.by_due.insert((due, id));
        }
    }

    /// Has all looked at now.
    fn look_at_all(&mut self, now: Instant) {
        self.look_at(now, |_| true);
    }

    /// Has those looked at now that have no next look.
    pub(super) fn look_at_unscheduled(&mut self, now: Instant) {
        self.look_at(now, |entry| entry.due.is_none());
    }

    fn look_at(&mut self, now: Instant, is_meant: impl Fn(&Entry) -> bool) {
        let meant: Vec<u64> = self
            .entries
            .iter()
            .filter(|(_, entry)| entry.is_asleep && is_meant(entry))
            .map(|(&id, _)| id)
            .collect();
        for id in meant {
            self.set_due(id, Some(now));
        }
    }

    pub(super) fn next_due(&self) -> Option<Instant> {
        self.by_due.first().map(|&(due, _)| due)
    }

    /// Those that are due. They have no next poll before [`tell`](Self::tell) or
    /// [`fail`](Self::fail) sets one.
    pub(super) fn take_due(&mut self, now: Instant) -> Batch {
        let mut batch = Batch::default();
        while let Some(&(due, id)) = self.by_due.first()
            && due <= now
        {
            self.by_due.pop_first();
            let Some(entry) = self.entries.get_mut(&id) else {
                continue;
            };
            entry.due = None;
            batch.ids.push(id);
            match entry.hears {
                Hears::TheEnd => batch.ends.insert(entry.run_id),
                Hears::Everything => batch.states.insert(entry.run_id),
            };
        }
        batch
    }

    /// Notes what a look saw. Returns whom to wake.
    pub(super) fn tell(
        &mut self,
        batch: &Batch,
        sights: &Sights,
        now: Instant,
    ) -> Vec<Arc<Notify>> {
        self.judge_notifications(now);
        let mut bells = Vec::new();
        for &id in &batch.ids {
            let Some(entry) = self.entries.get_mut(&id).filter(|entry| entry.is_asleep) else {
                continue;
            };
            let sights = match entry.hears {
                Hears::TheEnd => &sights.ends,
                Hears::Everything => &sights.states,
            };
            let sight = sights.get(&entry.run_id).copied().unwrap_or(Sight::Missing);
            if entry.seen != Some(sight) {
                if entry.seen.is_some() && entry.news.is_none() && entry.listens {
                    match sight {
                        Sight::Run { is_ended: true, .. } => {
                            self.untold.entry(entry.run_id).or_insert(now);
                        }
                        _ => self.tells_all = false,
                    }
                }
                entry.seen = Some(sight);
                entry.news = Some(News::Look);
                bells.push(Arc::clone(&entry.bell));
            } else if entry.is_failing && entry.news.is_none() {
                entry.news = Some(News::Recovered);
                bells.push(Arc::clone(&entry.bell));
            }
            entry.is_failing = false;
            if entry.due.is_none() {
                self.schedule(id, now);
            }
        }
        bells
    }

    /// Ends without a notification in time: notifications do not arrive.
    fn judge_notifications(&mut self, now: Instant) {
        let is_late = |&found: &Instant| now.saturating_duration_since(found) > LATE;
        if self.untold.values().any(is_late) {
            self.tells_ends = false;
            self.tells_all = false;
            self.untold.retain(|_, found| !is_late(found));
        }
    }

    /// Notes that a look failed. Returns whom to wake.
    pub(super) fn fail(
        &mut self,
        batch: &Batch,
        error: &Arc<CallError>,
        again: Instant,
    ) -> Vec<Arc<Notify>> {
        let mut bells = Vec::new();
        for &id in &batch.ids {
            let Some(entry) = self.entries.get_mut(&id).filter(|entry| entry.is_asleep) else {
                continue;
            };
            entry.is_failing = true;
            if !matches!(entry.news, Some(News::Look)) {
                entry.news = Some(News::Failed(Arc::clone(error)));
                bells.push(Arc::clone(&entry.bell));
            }
            self.set_due(id, Some(again));
        }
        bells
    }

    /// Notes a notification. Returns whom to wake.
    pub(super) fn announce(&mut self, event: Event) -> Vec<Arc<Notify>> {
        self.tells_ends = true;
        if event.is_end {
            self.untold.remove(&event.run_id);
        } else {
            self.tells_all = true;
        }
        let of_run = self
            .by_run
            .range((event.run_id, 0)..=(event.run_id, u64::MAX));
        let mut bells = Vec::new();
        for (_, id) in of_run {
            if let Some(entry) = self.entries.get_mut(id)
                && (event.is_end || entry.hears == Hears::Everything)
            {
                entry.news = Some(News::Look);
                bells.push(Arc::clone(&entry.bell));
            }
        }
        bells
    }

    /// Forgets what is known of notifications, and has all looked at.
    pub(super) fn line_changed(&mut self, now: Instant) {
        self.tells_ends = false;
        self.tells_all = false;
        self.untold.clear();
        self.look_at_all(now);
    }

    /// All bells, for a message that is not about a run.
    pub(super) fn bells(&self) -> Vec<Arc<Notify>> {
        let asleep = self.entries.values().filter(|entry| entry.is_asleep);
        asleep.map(|entry| Arc::clone(&entry.bell)).collect()
    }
}
