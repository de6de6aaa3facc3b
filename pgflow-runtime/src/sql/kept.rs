//! A connection that stays with its caller from one call to the next.
//!
//! A pool tests each connection when it is taken and when it is given back: two more round trips for a call, and another connection each time,
//! whose server process has other things in its caches. Calls that follow each other closely spare that.

use std::{
    mem,
    sync::{Arc, Mutex},
    time::Duration,
};

use sqlx::{PgPool, Postgres, pool::PoolConnection};
use tokio::time::{Instant, sleep_until};

use super::CallError;
use crate::lock::lock;

/// How long a connection waits for the next call.
const KEEP: Duration = Duration::from_millis(20);

/// How long a connection is kept from the pool, however closely the calls follow: only the pool knows when one has lived long enough.
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
    /// When the pool gave it.
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
        let mut waiting = lock(&self.waiting);
        waiting.connections.push(KeptConnection {
            until: Instant::now() + KEEP,
            ..kept
        });
        let is_watched = mem::replace(&mut waiting.is_watched, true);
        // A runtime that shuts down drops what is spawned at once, here.
        drop(waiting);
        if !is_watched {
            tokio::spawn(give_back(Arc::clone(&self.waiting)));
        }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let kept = mem::take(&mut lock(&self.waiting).connections);
        // Not under the lock: a pool spawns what takes its connections back.
        drop(kept);
    }
}

impl Waiting {
    /// Takes out the connections whose time is over; returns when the next one's is. With none left
    /// nobody watches any more.
    fn take_over(&mut self, now: Instant) -> (Vec<KeptConnection>, Option<Instant>) {
        let is_over = |kept: &mut KeptConnection| kept.until <= now;
        let over = self.connections.extract_if(.., is_over).collect();
        // One that a call has taken comes back with a time of its own.
        let next = self.connections.iter().map(|kept| kept.until).min();
        self.is_watched = next.is_some();
        (over, next)
    }
}

/// Gives connections back for which no call has come, until none is left.
async fn give_back(waiting: Arc<Mutex<Waiting>>) {
    let mut until = Instant::now() + KEEP;
    loop {
        sleep_until(until).await;
        let (over, next) = lock(&waiting).take_over(Instant::now());
        drop(over);
        match next {
            Some(next) => until = next,
            None => return,
        }
    }
}
