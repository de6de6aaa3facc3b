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
use crate::{
    lock::lock,
    per_pool::{OfPool, PerPool},
};

/// How long a connection waits for the next call.
const KEEP: Duration = Duration::from_millis(20);

/// How long one waits that all workers of a pool claim by. Idle, some of them look now and then; together they are at it all the time.
const KEEP_SHARED: Duration = Duration::from_millis(100);

/// How long a connection is kept from the pool, however closely the calls follow: only the pool knows when one has lived long enough.
const LONGEST: Duration = Duration::from_secs(10);

static OF_CLAIMS: PerPool<Kept> = PerPool::new();

#[derive(Debug)]
pub(crate) struct Kept {
    pool: PgPool,
    /// How long one of them waits; further ones wait for [`KEEP`].
    keep_one: Duration,
    waiting: Waiting,
}

/// Until when, and which. The one that was used last comes last, and is used first.
type Waiting = Arc<Mutex<Vec<(Instant, KeptConnection)>>>;

impl OfPool for Kept {
    fn pool(&self) -> &PgPool {
        &self.pool
    }
}

#[derive(Debug)]
pub(crate) struct KeptConnection {
    pub(crate) connection: PoolConnection<Postgres>,
    /// When the pool gave it.
    since: Instant,
}

impl Kept {
    pub(crate) fn new(pool: PgPool) -> Self {
        Self::keeping(pool, KEEP)
    }

    fn keeping(pool: PgPool, keep_one: Duration) -> Self {
        Self {
            pool,
            keep_one,
            waiting: Arc::default(),
        }
    }

    /// Those for the claims of all workers that share the pool.
    pub(crate) fn of_claims(pool: &PgPool) -> Arc<Self> {
        OF_CLAIMS.of(pool, |pool| Self::keeping(pool, KEEP_SHARED))
    }

    /// A connection that was kept, or another one of the pool.
    pub(crate) async fn acquire(&self) -> Result<KeptConnection, CallError> {
        let kept = lock(&self.waiting).pop();
        match kept {
            Some((_, kept)) if !self.pool.is_closed() => Ok(kept),
            _ => Ok(KeptConnection {
                connection: self.pool.acquire().await?,
                since: Instant::now(),
            }),
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
        let keep = if waiting.is_empty() {
            self.keep_one
        } else {
            KEEP
        };
        let until = Instant::now() + keep;
        waiting.push((until, kept));
        drop(waiting);
        tokio::spawn(give_back(Arc::clone(&self.waiting), until));
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        lock(&self.waiting).clear();
    }
}

/// Gives the connections back whose time has come by then. One that a call has taken comes back with a time of its own.
async fn give_back(waiting: Waiting, until: Instant) {
    sleep_until(until).await;
    let now = Instant::now();
    lock(&waiting).retain(|(until, _)| *until > now);
}
