//! The floor: what the same server does through PGMQ's own functions alone.

use std::time::Instant;

use futures_util::future::try_join_all;
use serde::Serialize;
use serde_json::{Value, json};
use sqlx::PgPool;

use crate::{Result, options::Options, server::Server};

pub(crate) const CONNECTIONS: u16 = 4;
pub(crate) const BATCH: u32 = 10;
/// A multiple of what all connections send in a batch each.
const MESSAGES: u32 = 20_000;
const VISIBILITY_SECONDS: i32 = 30;

/// Messages a second.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Floor {
    pub(crate) send: f64,
    pub(crate) read_delete: f64,
}

impl Floor {
    /// Sent, read and deleted, one phase after the other.
    pub(crate) fn both(self) -> f64 {
        1.0 / (1.0 / self.send + 1.0 / self.read_delete)
    }
}

/// All messages sent, then all read and deleted; each call a transaction.
pub(crate) async fn measure(server: &Server, options: &Options) -> Result<Floor> {
    let database = server.database(options.connections).await?;
    let pool = database.pool_of(CONNECTIONS).await?;
    pgflow::migrate(&pool).await?;
    sqlx::query("select pgmq.create('floor')")
        .execute(&pool)
        .await?;
    let batches_each = MESSAGES / (BATCH * u32::from(CONNECTIONS));

    let clock = Instant::now();
    try_join_all((0..CONNECTIONS).map(|_| send(&pool, batches_each))).await?;
    let send = f64::from(MESSAGES) / clock.elapsed().as_secs_f64();

    database.settle().await?;
    let clock = Instant::now();
    let deleted = try_join_all((0..CONNECTIONS).map(|_| read_delete(&pool))).await?;
    let read_delete = f64::from(MESSAGES) / clock.elapsed().as_secs_f64();

    let deleted: usize = deleted.iter().sum();
    if deleted != MESSAGES as usize {
        return Err(format!("{deleted} of {MESSAGES} messages were deleted").into());
    }
    pool.close().await;
    database.discard().await?;
    Ok(Floor { send, read_delete })
}

async fn send(pool: &PgPool, batches: u32) -> Result<()> {
    let mut connection = pool.acquire().await?;
    let messages: Vec<Value> = (0..BATCH).map(|n| json!({ "n": n })).collect();
    for _ in 0..batches {
        sqlx::query("select pgmq.send_batch('floor', $1::jsonb[])")
            .bind(&messages)
            .execute(&mut *connection)
            .await?;
    }
    Ok(())
}

async fn read_delete(pool: &PgPool) -> Result<usize> {
    let mut connection = pool.acquire().await?;
    let mut deleted = 0;
    loop {
        let messages: Vec<i64> =
            sqlx::query_scalar("select msg_id from pgmq.read('floor', $1, $2)")
                .bind(VISIBILITY_SECONDS)
                .bind(i32::try_from(BATCH)?)
                .fetch_all(&mut *connection)
                .await?;
        if messages.is_empty() {
            return Ok(deleted);
        }
        deleted += sqlx::query("select pgmq.delete('floor', $1::bigint[])")
            .bind(&messages)
            .fetch_all(&mut *connection)
            .await?
            .len();
    }
}
