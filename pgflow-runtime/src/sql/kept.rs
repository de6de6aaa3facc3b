//! A connection that stays with its caller from one call to the next.
//!
//! A pool tests each connection when it is taken and when it is given back: two more round trips for a call, and another connection each time,
//! whose server process has other things in its caches. Calls that follow each other closely spare that.

use std::{
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
    connection: Option<PoolConnection<Postgres>>,
    until: Option<Instant>,
    /// When the pool gave it.
    since: Option<Instant>,
    /// Somebody gives the connection back when its time has come.
    is_watched: bool,
}

impl Kept {
    pub(crate) fn new(pool: PgPool) -> Self {
        Self {
            pool,
            waiting: Arc::default(),
        }
    }

    /// The connection that was kept, or another one of the pool.
    pub(crate) async fn acquire(&self) -> Result<PoolConnection<Postgres>, CallError> {
        let kept = lock(&self.waiting).connection.take();
        match kept {
            Some(connection) if !self.pool.is_closed() => Ok(connection),
            _ => {
                let connection = self.pool.acquire().await?;
                lock(&self.waiting).since = Some(Instant::now());
                Ok(connection)
            }
        }
    }

    /// Keeps the connection for a moment, unless it is the last one that others could have.
    pub(crate) fn keep(&self, connection: PoolConnection<Postgres>) {
        let pool = &self.pool;
        let others = pool.num_idle() > 0 || pool.size() < pool.options().get_max_connections();
        if pool.is_closed() || !others {
            return;
        }
        let mut waiting = lock(&self.waiting);
        if waiting.since.is_none_or(|since| since.elapsed() >= LONGEST) {
            return;
        }
        waiting.connection = Some(connection);
        waiting.until = Some(Instant::now() + KEEP);
        if !waiting.is_watched {
            waiting.is_watched = true;
            tokio::spawn(give_back(Arc::clone(&self.waiting)));
        }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        lock(&self.waiting).connection = None;
    }
}

/// Gives the connection back when no call has come for it.
async fn give_back(waiting: Arc<Mutex<Waiting>>) {
    loop {
        let until = lock(&waiting).until.unwrap_or_else(Instant::now);
        sleep_until(until).await;
        let mut waiting = lock(&waiting);
        // A call may be under way, or have ended since.
        if waiting.until.is_none_or(|until| until <= Instant::now()) {
            waiting.connection = None;
            waiting.is_watched = false;
            return;
        }
    }
}
