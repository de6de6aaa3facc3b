//! Claims whose answers were lost with their connection: the database may have started tasks that this
//! worker knows nothing of, and waits for as long as the worker lives.

use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::time::Instant;
use tracing::{debug, warn};

use crate::sql::{CallError, claim::ClaimedTasks};

/// The time that a server may go on with a claim whose connection is lost, before the second look.
const LATE: Duration = Duration::from_secs(45);

/// The starts, as the database stamps them, of the last claim that was answered, and of the first after
/// one that was not.
#[derive(Debug, Default)]
pub(crate) struct LostClaims {
    last_answered: Option<DateTime<Utc>>,
    lost: Option<Window>,
}

/// A time in which claims were made and not answered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Window {
    pub(crate) after: Option<DateTime<Utc>>,
    pub(crate) before: Option<DateTime<Utc>>,
    look_at: Instant,
    is_last_look: bool,
}

impl LostClaims {
    pub(crate) fn answered(&mut self, claimed: &ClaimedTasks) {
        let starts = || {
            let tasks = claimed.tasks.iter().chain(&claimed.excess);
            tasks.filter_map(|task| task.started_at)
        };
        if let Some(window) = &mut self.lost {
            window.before = window.before.or(starts().min());
        }
        self.last_answered = self.last_answered.max(starts().max());
    }

    /// Notes a claim that failed. One that the database refused has started nothing.
    pub(crate) fn failed(&mut self, error: &CallError) {
        if !is_without_an_answer(error) {
            return;
        }
        let after = self.lost.map_or(self.last_answered, |window| window.after);
        self.lost = Some(Window {
            after,
            before: None,
            look_at: Instant::now(),
            is_last_look: false,
        });
    }

    /// The claims that are to be looked for before the next one: at once, and again when a slow server
    /// must have ended them.
    pub(crate) fn due(&self) -> Option<Window> {
        self.lost.filter(|window| window.look_at <= Instant::now())
    }

    /// Notes what the look found: a number of tasks, which were given back.
    pub(crate) fn looked(&mut self, window: Window, tasks: i32) {
        if tasks > 0 {
            warn!(
                tasks,
                "tasks of a claim whose answer was lost went back into the queue"
            );
        } else {
            debug!("a claim whose answer was lost had started nothing");
        }
        self.lost = (!window.is_last_look).then(|| Window {
            look_at: Instant::now() + LATE,
            is_last_look: true,
            ..window
        });
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

    fn window(claims: &LostClaims) -> Option<(Option<i64>, Option<i64>)> {
        let seconds = |time: Option<DateTime<Utc>>| time.map(|time| time.timestamp());
        claims
            .lost
            .map(|window| (seconds(window.after), seconds(window.before)))
    }

    #[tokio::test]
    async fn the_window_lies_between_the_answers_around_the_loss() {
        let mut claims = LostClaims::default();
        claims.answered(&at(1));
        claims.answered(&ClaimedTasks::default());
        assert!(claims.due().is_none());
        claims.failed(&lost());
        claims.failed(&lost());
        assert!(claims.due().is_some());
        assert_eq!(window(&claims), Some((Some(1), None)));
        claims.answered(&at(5));
        claims.answered(&at(7));
        assert_eq!(window(&claims), Some((Some(1), Some(5))));
    }

    #[tokio::test]
    async fn the_database_itself_says_that_nothing_started() {
        let mut claims = LostClaims::default();
        claims.failed(&sqlstate("40P01"));
        claims.failed(&sqlx::Error::PoolTimedOut.into());
        assert!(claims.due().is_none());
    }
}
