//! Signs of life of work that may take long.

use std::{future::Future, pin::pin, time::Duration};

use tokio::time::{Instant, sleep_until};

use crate::{output, words::count};

/// Between two signs of life.
const PAUSE: Duration = Duration::from_secs(5);

pub(crate) struct Patience {
    since: Instant,
    said_at: Instant,
    is_silent: bool,
}

impl Patience {
    pub(crate) fn new(is_silent: bool) -> Self {
        let since = Instant::now();
        Self {
            since,
            said_at: since,
            is_silent,
        }
    }

    /// Waits for a part of the work, and says on standard error now and then how far it is.
    pub(crate) async fn during<T>(&mut self, what: &str, part: impl Future<Output = T>) -> T {
        let mut part = pin!(part);
        loop {
            tokio::select! {
                done = &mut part => return done,
                () = sleep_until(self.said_at + PAUSE), if !self.is_silent => {
                    self.said_at = Instant::now();
                    let passed = count(self.since.elapsed().as_secs(), "second");
                    output::say(format!("{what}, {passed} so far"));
                }
            }
        }
    }
}
