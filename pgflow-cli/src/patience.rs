//! Signs of life of a call that may take long.

use std::{future::Future, pin::pin, time::Duration};

use tokio::time::{Instant, sleep};

use crate::{output, words::count};

/// Between two signs of life.
const PAUSE: Duration = Duration::from_secs(5);

/// Waits for `work`, and says on standard error now and then that it still goes on.
pub(crate) async fn reporting<T>(what: &str, is_silent: bool, work: impl Future<Output = T>) -> T {
    let mut work = pin!(work);
    let since = Instant::now();
    loop {
        tokio::select! {
            done = &mut work => return done,
            () = sleep(PAUSE), if !is_silent => {
                let passed = count(since.elapsed().as_secs(), "second");
                output::say(format!("{what}, {passed} so far"));
            }
        }
    }
}
