//! A connection that stays with its caller from one call to the next.
//!
//! A pool tests each connection when it is taken and when it is returned. That is two more round
//! trips per call, and another connection each time, whose server process has other data in its
//! caches. Closely spaced calls avoid both.

use std::{
    mem,
    sync::{Arc, Mutex},
    time::Duration,
};

use sqlx::{PgPool, Postgres, pool::PoolConnection};
use tokio::time::{Instant, sleep_until};

use super::CallError;
use crate::lock::lock;

/// The time for which a connection waits for the next call.
const KEEP: Duration = Duration::from_millis(20);

/// The longest time for which a connection is kept from the pool, however closely the calls follow:
/// only the pool knows when one has lived long enough.
const LONGEST: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(crate) struct Kept {
    pool: PgPool,
    waiting: Arc<Mutex<Waiting>>,
}

#[derive(Debug, Default)]
struct Waiting {
    /// The one that was used last comes last, and is used first.
    connections: Vec<KeptConnection>,
    /// Somebody gives connections back when their time has come.
    is_watched: bool,
}

#[derive(Debug)]
pub(crate) struct KeptConnection {
    pub(crate) connection: PoolConnection<Postgres>,
    /// The time at which the pool returned it.
    since: Instant,
    until: Instant,
}

impl Kept {
    pub(crate) fn new(pool: PgPool) -> Self {
        Self {
            pool,
            waiting: Arc::default(),
        }
    }

    pub(crate) fn pool(&self) -> &PgPool {
        &self.pool
    }

    /// A connection that was kept, or another one of the pool.
    pub(crate) async fn acquire(&self) -> Result<KeptConnection, CallError> {
        let kept = lock(&self.waiting).connections.pop();
        match kept {
            Some(kept) if !self.pool.is_closed() => Ok(kept),
            _ => {
                let connection = self.pool.acquire().await?;
                let now = Instant::now();
                Ok(KeptConnection {
                    connection,
                    since: now,
                    until: now,
                })
            }
        }
    }

    /// Keeps the connection for a moment, unless it is the last one that others could have.
    pub(crate) fn keep(&self, kept: KeptConnection) {
        let pool = &self.pool;
        let others = pool.num_idle() > 0 || pool.size() < pool.options().get_max_connections();
        if pool.is_closed() || !others || kept.since.elapsed() >= LONGEST {
            return;
        }
        let was_watched = {
            let mut waiting = lock(&self.waiting);
            waiting.connections.push(KeptConnection {
                until: Instant::now() + KEEP,
                ..kept
            });
            mem::replace(&mut waiting.is_watched, true)
        };
        // Not under the lock: a runtime that shuts down drops the task at once.
        if !was_watched {
            tokio::spawn(give_back(Watch {
                waiting: Arc::clone(&self.waiting),
                is_over: false,
            }));
        }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let connections = mem::take(&mut lock(&self.waiting).connections);
        // Not under the lock: each is returned by a task of its own.
        drop(connections);
    }
}

/// Whoever gives connections back when their time has come, until this is dropped.
struct Watch {
    waiting: Arc<Mutex<Waiting>>,
    is_over: bool,
}

impl Drop for Watch {
    fn drop(&mut self) {
        if !self.is_over {
            lock(&self.waiting).is_watched = false;
        }
    }
}

/// Gives connections back for which no call has come, until none is left.
async fn give_back(mut watch: Watch) {
    let mut until = Instant::now() + KEEP;
    loop {
        sleep_until(until).await;
        let (expired, next) = {
            let mut waiting = lock(&watch.waiting);
            let now = Instant::now();
            let expired: Vec<_> = waiting
                .connections
                .extract_if(.., |kept| kept.until <= now)
                .collect();
            // One that a call has taken comes back with a time of its own.
            let next = waiting.connections.iter().map(|kept| kept.until).min();
            waiting.is_watched = next.is_some();
            (expired, next)
        };
        drop(expired);
        let Some(next) = next else {
            // Another one may watch by now.
            watch.is_over = true;
            return;
        };
        until = next;
    }
}
