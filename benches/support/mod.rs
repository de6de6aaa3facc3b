//! What the benchmarks share.

use std::{env, error::Error, str::FromStr};

use pgflow::{
    dev::DevDatabase,
    sqlx::{PgPool, postgres::PgPoolOptions},
};

pub(crate) type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// A number from the environment.
pub(crate) fn number<T: FromStr<Err: Error + 'static>>(name: &str, default: T) -> Result<T> {
    match env::var(name) {
        Ok(text) => Ok(text
            .parse()
            .map_err(|error| format!("{name} is not a number: {error}"))?),
        Err(_) => Ok(default),
    }
}

/// `DATABASE_URL`, or a private server with the durability of a real one.
pub(crate) async fn database(connections: u32) -> Result<(DevDatabase, PgPool)> {
    let database = DevDatabase::builder()
        .setting("fsync", "on")
        .setting("synchronous_commit", "on")
        .setting("full_page_writes", "on")
        .setting("shared_buffers", "512MB")
        .setting("max_wal_size", "4GB")
        .start()
        .await?;
    let pool = PgPoolOptions::new()
        .max_connections(connections)
        .connect(database.url())
        .await?;
    pgflow::migrate(&pool).await?;
    Ok((database, pool))
}
