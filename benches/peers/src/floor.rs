//! The floor: what the same server does through PGMQ's own functions alone.

use serde::Serialize;

use crate::{
    Result,
    options::Options,
    queue::{End, Queue},
    server::Server,
};

pub(crate) const CONNECTIONS: u16 = 4;
pub(crate) const BATCH: usize = 10;
const MESSAGES: usize = 20_000;

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
    let queue = Queue {
        pool: &pool,
        batch: BATCH,
        end: End::Delete,
    };
    queue.create().await?;
    let send = queue.send(MESSAGES).await?;
    database.settle().await?;
    let read_delete = queue.receive(MESSAGES).await?;
    pool.close().await;
    database.discard().await?;
    Ok(Floor { send, read_delete })
}
