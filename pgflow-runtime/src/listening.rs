//! A connection that hears notifications, beside those of a pool.

use std::{future::Future, time::Duration};

use sqlx::{
    PgPool,
    postgres::{PgListener, PgNotification},
};
use tokio::time::timeout;

/// How long the connection may take to be made, and to answer.
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
        within_limit(Self::connect(pool, channel)).await?
    }

    async fn connect(pool: &PgPool, channel: &str) -> Result<Self, sqlx::Error> {
        let options = pool.options().clone();
        let own = options
            .max_connections(1)
            .min_connections(0)
            .max_lifetime(None)
            .idle_timeout(None)
            .acquire_timeout(LIMIT)
            // Read each time: a password may have been renewed.
            .connect_lazy_with(pool.connect_options().as_ref().clone());
        let listener = PgListener::connect_with(&own).await?;
        let mut listening = Self {
            pool: own,
            listener,
        };
        let listener = &mut listening.listener;
        listener.eager_reconnect(false);
        listener.ignore_pool_close_event(true);
        listener.listen(channel).await?;
        Ok(listening)
    }

    /// The next notification.
    ///
    /// Dropped unfinished, this loses nothing: it awaits only bytes from the socket, and takes them out of the buffer once a whole message is there.
    /// Making a connection anew, which `try_recv` would also do, is not safe to drop; so that is never left to it: after an error the connection has
    /// to be dropped.
    pub(crate) async fn hear(&mut self) -> Result<PgNotification, sqlx::Error> {
        self.listener.try_recv().await?.ok_or_else(lost)
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        // The connection then says good-bye and is closed, by a task in the background: one that hangs holds nobody up.
        drop(self.pool.close());
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

fn no_answer() -> sqlx::Error {
    std::io::Error::new(
        std::io::ErrorKind::TimedOut,
        format!("the server did not answer within {LIMIT:?}"),
    )
    .into()
}
