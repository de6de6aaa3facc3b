//! Calls that end, also when the server never answers: its machine lost power, or a firewall forgot the connection, and no packet ever says so.

use std::{
    io,
    sync::{Mutex, MutexGuard},
    time::Duration,
};

use sqlx::{PgConnection, PgPool};
use tokio::time::timeout;

use super::{CallError, kept::Kept};
use crate::lock::lock;

/// How long a call may take at first. Only calls that wait for a lock, or move very much data, take nearly as long.
const FIRST: Duration = Duration::from_secs(30);
/// How long it may take when it has run out of time again and again: one that is slow for a good reason comes to its end.
const LONGEST: Duration = Duration::from_mins(10);

/// One kind of call. Each that runs out of time gives the next twice as much; one that ends in time sets that back.
#[derive(Debug)]
pub(crate) struct Limited {
    kept: Kept,
    limit: Mutex<Duration>,
}

impl Limited {
    pub(crate) fn new(pool: PgPool) -> Self {
        Self {
            kept: Kept::new(pool),
            limit: Mutex::new(FIRST),
        }
    }

    /// Makes a call on a connection of the pool.
    ///
    /// # Errors
    ///
    /// A transient one when the call runs out of time. It may have its effect all the same, as when a connection is lost.
    pub(crate) async fn call<T>(
        &self,
        call: impl AsyncFnOnce(&mut PgConnection) -> Result<T, CallError>,
    ) -> Result<T, CallError> {
        let limit = *self.limit();
        let mut kept = self.kept.acquire().await?;
        let result = if let Ok(result) = timeout(limit, call(&mut kept.connection)).await {
            if result.is_ok() {
                self.kept.keep(kept);
            }
            result
        } else {
            // Given back, it would be waited for by whoever gets it next.
            kept.connection.close_on_drop();
            Err(out_of_time(limit))
        };
        *self.limit() = next(limit, &result);
        result
    }

    fn limit(&self) -> MutexGuard<'_, Duration> {
        lock(&self.limit)
    }
}

fn next<T>(limit: Duration, result: &Result<T, CallError>) -> Duration {
    match result {
        Err(error) if error.is_out_of_time() => (limit * 2).min(LONGEST),
        _ => FIRST,
    }
}

/// Makes a call that takes no longer than this. The wait for a connection has the pool's own limit.
pub(crate) async fn within<T>(
    pool: &PgPool,
    limit: Duration,
    call: impl AsyncFnOnce(&mut PgConnection) -> Result<T, CallError>,
) -> Result<T, CallError> {
    let mut connection = pool.acquire().await?;
    if let Ok(result) = timeout(limit, call(&mut connection)).await {
        return result;
    }
    // Given back, it would be waited for by whoever gets it next.
    connection.close_on_drop();
    Err(out_of_time(limit))
}

fn out_of_time(limit: Duration) -> CallError {
    CallError::Database(sqlx::Error::Io(io::Error::new(
        io::ErrorKind::TimedOut,
        format!("the server did not answer within {limit:?}"),
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_runs_out_of_time_is_transient_and_gives_the_next_one_more() {
        let mut limit = FIRST;
        let mut limits = Vec::new();
        for _ in 0..6 {
            let error = out_of_time(limit);
            assert!(error.is_transient());
            limit = next::<()>(limit, &Err(error));
            limits.push(limit.as_secs());
        }
        assert_eq!(limits, [60, 120, 240, 480, 600, 600]);
    }

    #[test]
    fn a_call_that_ends_sets_the_limit_back_whatever_came_of_it() {
        assert_eq!(next(LONGEST, &Ok(())), FIRST);
        let closed = CallError::Database(sqlx::Error::PoolClosed);
        assert_eq!(next::<()>(LONGEST, &Err(closed)), FIRST);
    }
}
