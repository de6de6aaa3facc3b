//! Claims whose responses were lost with their connection. The database may have started tasks that
//! this worker does not know, and waits for them until the worker ends.

use std::{collections::BTreeSet, time::Duration};

use chrono::{DateTime, Utc};
use tokio::time::Instant;
use tracing::{debug, warn};

use crate::sql::{CallError, claim::ClaimedTasks};

/// The times after a loss at which to look for what it started. A server may continue with a claim
/// for long after its connection was lost: it waits for a lock, or stood still.
const LOOKS: [Duration; 4] = [
    Duration::ZERO,
    Duration::from_secs(45),
    Duration::from_mins(5),
    Duration::from_mins(20),
];

/// The starts of tasks, as the database stamps them, which distinguish lost claims from answered
/// ones.
#[derive(Debug, Default)]
pub(crate) struct LostClaims {
    last_answered: Option<DateTime<Utc>>,
    lost: Option<Lost>,
}

/// Claims that were not answered, and what was answered since the first of them.
#[derive(Debug)]
pub(crate) struct Lost {
    /// The last start that was answered before.
    pub(crate) after: Option<DateTime<Utc>>,
    pub(crate) answered: BTreeSet<DateTime<Utc>>,
    /// Of the latest loss.
    since: Instant,
    looks: usize,
}

impl LostClaims {
    pub(crate) fn answered(&mut self, claimed: &ClaimedTasks) {
        let tasks = claimed.tasks.iter().chain(&claimed.excess);
        for start in tasks.filter_map(|task| task.started_at) {
            self.last_answered = self.last_answered.max(Some(start));
            if let Some(lost) = &mut self.lost {
                lost.answered.insert(start);
            }
        }
    }

    /// Notes a claim that failed. One that the database refused has started nothing.
    pub(crate) fn failed(&mut self, error: &CallError) {
        if !is_without_an_answer(error) {
            return;
        }
        let after = self.last_answered;
        let lost = self.lost.get_or_insert_with(|| Lost {
            after,
            answered: BTreeSet::new(),
            since: Instant::now(),
            looks: 0,
        });
        lost.since = Instant::now();
        lost.looks = 0;
    }

    /// The claims that are to be looked for before the next one.
    pub(crate) fn due(&self) -> Option<&Lost> {
        let is_due = |lost: &&Lost| lost.since + LOOKS[lost.looks] <= Instant::now();
        self.lost.as_ref().filter(is_due)
    }

    /// Notes what the look found: a number of tasks, which were returned.
    pub(crate) fn looked(&mut self, tasks: i32) {
        if tasks > 0 {
            warn!(
                tasks,
                "tasks of a claim whose answer was lost went back into the queue"
            );
        } else {
            debug!("a claim whose answer was lost has started nothing");
        }
        if let Some(lost) = &mut self.lost {
            lost.looks += 1;
            if lost.looks == LOOKS.len() {
                self.lost = None;
            }
        }
    }
}

fn is_without_an_answer(error: &CallError) -> bool {
    match error {
        CallError::Refused(_)
        | CallError::Database(
            sqlx::Error::Database(_) | sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed,
        ) => false,
        CallError::Database(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use crate::{sql::error::tests::sqlstate, worker::testing::claimed};

    fn lost() -> CallError {
        sqlx::Error::Io(io::ErrorKind::ConnectionReset.into()).into()
    }

    fn at(second: i64) -> ClaimedTasks {
        let mut task = claimed(1);
        task.started_at = DateTime::from_timestamp(second, 0);
        ClaimedTasks {
            tasks: vec![task],
            ..ClaimedTasks::default()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_answered_since_the_first_loss_is_known_also_after_another_one() {
        let mut claims = LostClaims::default();
        claims.answered(&at(1));
        claims.answered(&ClaimedTasks::default());
        assert!(claims.due().is_none());
        claims.failed(&lost());
        assert!(claims.due().is_some());
        claims.looked(0);
        assert!(claims.due().is_none());
        claims.answered(&at(5));
        claims.failed(&lost());
        claims.answered(&at(7));
        let due = claims.due().expect("a new loss");
        let seconds = |time: &DateTime<Utc>| time.timestamp();
        assert_eq!(due.after.as_ref().map(seconds), Some(1));
        let answered: Vec<i64> = due.answered.iter().map(seconds).collect();
        assert_eq!(answered, [5, 7]);
    }

    #[tokio::test(start_paused = true)]
    async fn looks_go_on_for_twenty_minutes() {
        let mut claims = LostClaims::default();
        claims.failed(&lost());
        for pause in LOOKS {
            tokio::time::sleep(pause).await;
            assert!(claims.due().is_some());
            claims.looked(0);
        }
        tokio::time::sleep(Duration::from_hours(1)).await;
        assert!(claims.due().is_none());
    }

    #[tokio::test]
    async fn the_database_itself_says_that_nothing_started() {
        let mut claims = LostClaims::default();
        claims.failed(&sqlstate("40P01"));
        claims.failed(&sqlx::Error::PoolTimedOut.into());
        assert!(claims.due().is_none());
    }
}
