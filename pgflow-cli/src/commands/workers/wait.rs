//! Looking again and again, until something holds or the time is over.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::{output, words::count};

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(500);
/// The longest interval between messages about the current wait.
const REMINDER: Duration = Duration::from_secs(10);

pub(super) struct Wait {
    since: Instant,
    timeout: Duration,
    /// The subject of the wait is not shown.
    is_silent: bool,
    said: Option<(Instant, String)>,
}

impl Wait {
    pub(super) fn new(timeout: Duration, is_silent: bool) -> Self {
        Self {
            since: Instant::now(),
            timeout,
            is_silent,
            said: None,
        }
    }

    /// Shows the subject of the wait on standard error, if it is new, and pauses; false when the
    /// time is over.
    pub(super) async fn pause(&mut self, what: &str) -> bool {
        let left = self.timeout.saturating_sub(self.since.elapsed());
        if left.is_zero() {
            return false;
        }
        self.say(what, left);
        sleep(PAUSE.min(left)).await;
        true
    }

    fn say(&mut self, what: &str, left: Duration) {
        let is_old = |(at, said): &(Instant, String)| said == what && at.elapsed() < REMINDER;
        if self.is_silent || self.said.as_ref().is_some_and(is_old) {
            return;
        }
        self.said = Some((Instant::now(), what.to_owned()));
        let seconds = left.as_secs_f64().ceil();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let left = count(seconds as u64, "second");
        output::say(format!("waiting for {what}, {left} more at most"));
    }
}
