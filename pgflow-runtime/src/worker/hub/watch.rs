//! The watchdog: names handlers that hold their threads, finds blocked runtimes, and ends attempts
//! whose worker could not renew them in time.

use std::{collections::HashMap, sync::Arc, time::Duration};

use tokio::{
    runtime::Id,
    time::{Instant, sleep_until},
};
use tracing::warn;

use super::{Core, Member};
use crate::worker::clock::{self, Moment};

/// The pause between two looks.
const LOOK: Duration = Duration::from_millis(500);
/// The longest time for which a handler may hold its thread.
const LONGEST: Duration = Duration::from_secs(1);
/// A look that is so late comes after the whole process stood still: handlers can't be blamed.
const GAP: Duration = Duration::from_millis(500);

/// Looks until it is dropped.
pub(super) async fn run(core: &Core) {
    let mut pulses = Pulses::default();
    // Since when the process has run without a gap.
    let mut since = clock::now();
    let mut due = Instant::now() + LOOK;
    loop {
        sleep_until(due).await;
        let now = clock::now();
        if due.elapsed() >= GAP {
            since = now;
            pulses.restart(now);
        }
        let members = core.members();
        pulses.take(&members, now);
        let mut ends = u64::MAX;
        for member in &members {
            let shared = &member.shared;
            abandon(member);
            ends = ends.min(shared.attempts.lease_ends().unwrap_or(u64::MAX));
            for blocked in shared.attempts.blocked(now, since, LONGEST) {
                let key = &blocked.key;
                member.log(|| {
                    warn!(
                        flow = shared.flow(),
                        step = key.step_slug,
                        run_id = %key.run_id,
                        task_index = key.task_index,
                        attempt = key.attempt,
                        held = ?blocked.held,
                        "the handler holds its thread: nothing else runs there, and neither its timeout nor \
                         a shutdown ends it; do blocking calls and long computations in `tokio::task::spawn_blocking`"
                    );
                });
            }
        }
        due = Instant::now() + until_next(now, ends);
    }
}

/// The pause until the next look, or until the first lease ends where that comes before.
fn until_next(now: u64, ends: u64) -> Duration {
    match ends.checked_sub(now) {
        Some(left) if left > 0 => LOOK.min(Duration::from_millis(left)),
        // Over: there is nothing to wait for but its renewal.
        _ => LOOK,
    }
}

fn abandon(member: &Member) {
    let attempts = member.shared.attempts.abandon();
    if attempts > 0 {
        member.log(|| {
            warn!(
                attempts,
                after = ?member.shared.options.abandon_after,
                "no heartbeat of the worker was answered in time (`abandon_after`), its attempts are dropped"
            );
        });
    }
}

/// Asks each runtime of handlers, again and again, to run a task.
#[derive(Debug, Default)]
struct Pulses(HashMap<Id, Arc<Moment>>);

impl Pulses {
    fn take(&mut self, members: &[Arc<Member>], now: u64) {
        let mut taken = HashMap::with_capacity(self.0.len());
        for member in members {
            let id = member.runtime.id();
            let asked = taken.entry(id).or_insert_with(|| {
                let asked = self.0.remove(&id).unwrap_or_default();
                if asked.get().is_none() {
                    asked.set(now);
                    let answer = Arc::clone(&asked);
                    member.runtime.spawn(async move { answer.clear() });
                }
                asked
            });
            member.shared.vitals.looked_at(now, asked.get());
        }
        self.0 = taken;
    }

    /// Counts all open requests from now on.
    fn restart(&self, now: u64) {
        for asked in self.0.values() {
            if let Some(asked_at) = asked.get() {
                asked.replace(asked_at, now);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_look_comes_in_time_for_the_end_of_a_lease() {
        assert_eq!(until_next(1000, u64::MAX), LOOK);
        assert_eq!(until_next(1000, 1100), Duration::from_millis(100));
        assert_eq!(until_next(1000, 900), LOOK);
    }
}
