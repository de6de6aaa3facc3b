//! A connection that receives notifications, beside those of a pool.

use std::{error::Error, future::Future, time::Duration};

use sqlx::{
    PgPool,
    postgres::{PgConnectOptions, PgListener, PgNotification, PgPoolOptions},
};
use tokio::time::{Instant, sleep, timeout};
use tracing::{debug, warn};

use crate::sql::retry::Backoff;

/// The longest time for the connection to be made, and to answer.
pub(crate) const LIMIT: Duration = Duration::from_secs(3);

#[derive(Debug)]
pub(crate) struct Listening {
    /// Of this connection alone.
    pool: PgPool,
    pub(crate) listener: PgListener,
}

impl Listening {
    /// A connection as the pool makes them, in addition to its own.
    pub(crate) async fn open(pool: &PgPool, channel: &str) -> Result<Self, sqlx::Error> {
        let options = pool.connect_options().as_ref().clone();
        Self::open_with(pool, options, Some(channel)).await
    }

    /// The same with other connect options, and without a channel if there are no notifications to
    /// receive.
    pub(crate) async fn open_with(
        pool: &PgPool,
        options: PgConnectOptions,
        channel: Option<&str>,
    ) -> Result<Self, sqlx::Error> {
        within_limit(Self::connect(pool, options, channel)).await?
    }

    async fn connect(
        pool: &PgPool,
        options: PgConnectOptions,
        channel: Option<&str>,
    ) -> Result<Self, sqlx::Error> {
        let own = single(pool)
            .max_lifetime(None)
            .idle_timeout(None)
            // Read each time: a password may have been renewed.
            .connect_lazy_with(options);
        let listener = PgListener::connect_with(&own).await?;
        let mut listening = Self {
            pool: own,
            listener,
        };
        let listener = &mut listening.listener;
        listener.eager_reconnect(false);
        listener.ignore_pool_close_event(true);
        if let Some(channel) = channel {
            listener.listen(channel).await?;
        }
        Ok(listening)
    }

    /// The next notification.
    ///
    /// Dropped unfinished, this loses nothing: it awaits only bytes from the socket, and takes them
    /// out of the buffer once a whole message is there. Making a connection anew, which `try_recv`
    /// would also do, is not safe to drop; so that is never left to it: after an error the
    /// connection has to be dropped.
    pub(crate) async fn hear(&mut self) -> Result<PgNotification, sqlx::Error> {
        self.listener.try_recv().await?.ok_or_else(lost)
    }
}

/// A pool of one connection, with the options and hooks of another pool.
///
/// A connection belongs to the runtime that made it: what runs on a runtime of its own takes none
/// of a pool that others use.
pub(crate) fn single(pool: &PgPool) -> PgPoolOptions {
    pool.options()
        .clone()
        .max_connections(1)
        .min_connections(0)
        .acquire_timeout(LIMIT)
}

impl Drop for Listening {
    fn drop(&mut self) {
        // The connection then says good-bye and is closed, by a task in the background: one that
        // hangs holds nobody up.
        drop(self.pool.close());
    }
}

/// A connection that lasted as long was a good one: the next one is made without much of a wait.
const LASTING: Duration = Duration::from_secs(10);

/// The reconnection after a loss: the next delay, and the lines that were logged about it.
#[derive(Debug)]
pub(crate) struct Outage {
    /// The log line of the first loss, and of those that follow it soon.
    lost: &'static str,
    still: &'static str,
    backoff: Backoff,
    is_known: bool,
}

impl Outage {
    pub(crate) fn new(lost: &'static str, still: &'static str) -> Self {
        Self {
            lost,
            still,
            backoff: Backoff::database(),
            is_known: false,
        }
    }

    /// A loss was logged, and no connection has lasted since.
    pub(crate) fn is_known(&self) -> bool {
        self.is_known
    }

    /// Tells that a connection which was asked for then is lost, or can't be made, and waits.
    pub(crate) async fn after(&mut self, since: Instant, error: &sqlx::Error) {
        let delay = self.note(since, error);
        sleep(delay).await;
    }

    /// Tells the same; returns how long to wait.
    pub(crate) fn note(&mut self, since: Instant, error: &(dyn Error + 'static)) -> Duration {
        if since.elapsed() >= LASTING {
            self.backoff.reset();
            self.is_known = false;
        }
        let delay = self.backoff.next_delay();
        // Said once: what the connection is for continues without it, and the rest of the database
        // may be away, too.
        if self.is_known {
            debug!(?delay, error, "{}", self.still);
        } else {
            warn!(?delay, error, "{}", self.lost);
            self.is_known = true;
        }
        delay
    }
}

/// Fails when the call takes too long: the connection has then to be dropped.
pub(crate) async fn within_limit<T>(call: impl Future<Output = T>) -> Result<T, sqlx::Error> {
    timeout(LIMIT, call).await.map_err(|_elapsed| no_answer())
}

fn lost() -> sqlx::Error {
    std::io::Error::new(
        std::io::ErrorKind::ConnectionAborted,
        "the server closed the connection",
    )
    .into()
}

pub(crate) fn no_answer() -> sqlx::Error {
    std::io::Error::new(
        std::io::ErrorKind::TimedOut,
        format!("the server did not answer within {LIMIT:?}"),
    )
    .into()
}
