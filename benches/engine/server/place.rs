//! A database in which things are measured.

use pgflow::sqlx::{
    self, PgPool,
    postgres::{PgConnectOptions, PgPoolOptions},
};

use crate::{Result, load::Meter, variant::Events};

#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) history: u64,
    /// For what is not measured.
    pub(crate) pool: PgPool,
    pub(crate) meter: Meter,
    /// For another process: the URL, and the database when it is another one than the URL's.
    pub(crate) url: String,
    pub(crate) database: Option<String>,
    connect: PgConnectOptions,
    /// The event level that was found.
    events: String,
}

impl Place {
    /// Migrates the database.
    pub(super) async fn new(
        connect: PgConnectOptions,
        url: String,
        database: Option<String>,
        history: u64,
    ) -> Result<Self> {
        let pool = PgPoolOptions::new()
            .max_connections(2)
            .connect_with(connect.clone())
            .await?;
        pgflow::migrate(&pool).await?;
        let events = sqlx::query_scalar("select event_level from pgflow.installation")
            .fetch_one(&pool)
            .await?;
        Ok(Self {
            meter: Meter::new(&pool).await?,
            history,
            pool,
            url,
            database,
            connect,
            events,
        })
    }

    /// A pool whose connections are all open, and stay so.
    pub(crate) async fn pool_of(&self, connections: u32) -> Result<PgPool> {
        open(self.connect.clone(), connections).await
    }

    pub(crate) async fn set_events(&self, events: Events) -> Result<()> {
        self.set_event_level(events.name()).await
    }

    /// Puts back what was found.
    pub(crate) async fn restore(self) -> Result<()> {
        self.set_event_level(&self.events).await?;
        self.pool.close().await;
        Ok(())
    }

    async fn set_event_level(&self, level: &str) -> Result<()> {
        sqlx::query("update pgflow.installation set event_level = $1 where event_level <> $1")
            .bind(level)
            .execute(&self.pool)
            .await?;
        Ok(())
    }
}

/// A pool whose connections are all open, and stay so.
pub(crate) async fn open(connect: PgConnectOptions, connections: u32) -> Result<PgPool> {
    let pool = PgPoolOptions::new()
        .max_connections(connections)
        .idle_timeout(None)
        .max_lifetime(None)
        .connect_with(connect)
        .await?;
    let mut sessions = Vec::new();
    for _ in 0..connections {
        sessions.push(pool.acquire().await?);
    }
    drop(sessions);
    Ok(pool)
}
