//! Calls with a time limit, for the case that the server never answers: its machine lost power, or
//! a firewall forgot the connection, and no packet ever reports it.

use std::{
    error::Error,
    io,
    sync::{Mutex, MutexGuard},
    time::Duration,
};

use sqlx::{PgConnection, PgPool};
use tokio::time::timeout;

use super::{CallError, error::blames_the_session, kept::Kept};
use crate::lock::lock;

/// The initial time limit of a call. Only calls that wait for a lock, or move very much data, take
/// nearly as long.
const FIRST: Duration = Duration::from_secs(30);
/// The time limit after repeated timeouts: a call that is slow for a good reason can then finish.
const LONGEST: Duration = Duration::from_mins(10);

/// One kind of call. Each that runs out of time gives the next twice as much; one that ends in time
/// sets that back.
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

    /// Makes a call on a connection of the pool, and again on others while it meets such that have
    /// turned bad.
    ///
    /// # Errors
    ///
    /// A transient one when the call runs out of time. It may have its effect anyway, as when
    /// a connection is lost.
    pub(crate) async fn call<T>(
        &self,
        call: impl AsyncFnOnce(&mut PgConnection) -> Result<T, CallError> + Clone,
    ) -> Result<T, CallError> {
        let limit = *self.limit();
        let mut bad = BadConnections::of(self.kept.pool());
        let result = loop {
            let mut kept = self.kept.acquire().await?;
            match timeout(limit, call.clone()(&mut kept.connection)).await {
                Ok(Ok(value)) => {
                    self.kept.keep(kept);
                    break Ok(value);
                }
                Ok(Err(error)) => {
                    if error.spoils_connection() {
                        kept.connection.close_on_drop();
                    }
                    if !bad.is_to_be_replaced(&error) {
                        break Err(error);
                    }
                }
                Err(_elapsed) => {
                    // Given back, it would be waited for by whoever gets it next.
                    kept.connection.close_on_drop();
                    break Err(out_of_time(limit));
                }
            }
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

/// Makes a call that takes no longer than this, and again on others while it meets connections that
/// have turned bad. The wait for a connection has the pool's own limit.
pub(crate) async fn within<T>(
    pool: &PgPool,
    limit: Duration,
    call: impl AsyncFnOnce(&mut PgConnection) -> Result<T, CallError> + Clone,
) -> Result<T, CallError> {
    let mut bad = BadConnections::of(pool);
    loop {
        let mut connection = pool.acquire().await?;
        let Ok(result) = timeout(limit, call.clone()(&mut connection)).await else {
            // Given back, it would be waited for by whoever gets it next.
            connection.close_on_drop();
            return Err(out_of_time(limit));
        };
        if let Err(error) = &result {
            if error.spoils_connection() {
                connection.close_on_drop();
            }
            if bad.is_to_be_replaced(error) {
                continue;
            }
        }
        return result;
    }
}

/// Makes a call on a connection of the pool, and again on others while it meets such that have
/// turned bad. A macro, since futures of closures over connections are not `Send` for every caller.
macro_rules! on_pool {
    ($pool:expr, $connection:ident => $call:expr) => {{
        let pool: &::sqlx::PgPool = $pool;
        let mut bad = $crate::sql::limit::BadConnections::of(pool);
        loop {
            let mut held = pool.acquire().await.map_err($crate::sql::CallError::from)?;
            let result = {
                let $connection = &mut *held;
                $call.await
            };
            match result {
                Err(error) if bad.is_to_be_replaced(&error) => held.close_on_drop(),
                result => break result,
            }
        }
    }};
}

pub(crate) use on_pool;

/// The connections of a pool that a call may find to have turned bad, as all may have at once: each
/// is closed, and the call is made on the next. A new connection that is bad as well is an error.
#[derive(Debug)]
pub(crate) struct BadConnections {
    left: u32,
}

impl BadConnections {
    pub(crate) fn of(pool: &PgPool) -> Self {
        // Of those that there are now, one is used up by this call itself where it is the first.
        Self {
            left: pool.size().max(1),
        }
    }

    /// True when the error blames a connection that may be an old one: close it, and make the call
    /// on another.
    pub(crate) fn is_to_be_replaced(&mut self, error: &(dyn Error + 'static)) -> bool {
        let is_bad = self.left > 0 && blames_the_session(error);
        self.left -= u32::from(is_bad);
        is_bad
    }
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
    fn no_more_bad_connections_are_replaced_than_there_were() {
        let mut bad = BadConnections { left: 2 };
        let read_only = crate::sql::error::tests::sqlstate("25006");
        let refused = crate::sql::error::tests::sqlstate("PF002");
        assert!(!bad.is_to_be_replaced(&refused));
        assert!(bad.is_to_be_replaced(&read_only) && bad.is_to_be_replaced(&read_only));
        assert!(!bad.is_to_be_replaced(&read_only));
    }

    #[test]
    fn a_call_that_ends_sets_the_limit_back_whatever_came_of_it() {
        assert_eq!(next(LONGEST, &Ok(())), FIRST);
        let closed = CallError::Database(sqlx::Error::PoolClosed);
        assert_eq!(next::<()>(LONGEST, &Err(closed)), FIRST);
    }
}
