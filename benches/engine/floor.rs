//! The maximum of queue and disk: the same messages through PGMQ alone, and bare commits.

use std::time::{Duration, Instant};

use pgflow::sqlx;
use tokio::task::JoinSet;

use crate::{
    Result,
    options::Options,
    queue::{End, Queue},
    server::Place,
};

/// The time for which commits are counted.
const COMMITS: Duration = Duration::from_secs(1);
/// The parameters of figures from other machines: connections and messages of a batch.
const ELSEWHERE: (u32, usize) = (4, 10);

/// The results, per second.
#[derive(Debug)]
pub(crate) struct Floor {
    pub(crate) batch: usize,
    pub(crate) connections: u32,
    pub(crate) messages: usize,
    pub(crate) send: f64,
    pub(crate) read_archive: f64,
    /// Messages that are sent, read and archived.
    pub(crate) all: f64,
    /// In batches of 10 over 4 connections.
    pub(crate) send_by_ten: f64,
    pub(crate) read_delete_by_ten: f64,
    /// By the number of connections.
    pub(crate) commits: Vec<(u32, f64)>,
}

/// Measures with the worker's batches and connections, over so many messages.
pub(crate) async fn floor(place: &Place, options: &Options, messages: usize) -> Result<Floor> {
    let connections = options.worker.connections * options.workers;
    let batch = options.worker.concurrency;
    let (send, read_archive) = through(place, connections, batch, messages, End::Archive).await?;
    let (ten_connections, ten) = ELSEWHERE;
    let (send_by_ten, read_delete_by_ten) =
        through(place, ten_connections, ten, messages, End::Delete).await?;
    let mut sizes = vec![1, 4, connections];
    sizes.sort_unstable();
    sizes.dedup();
    let mut commits = Vec::new();
    for connections in sizes {
        commits.push((connections, commits_per_second(place, connections).await?));
    }
    Ok(Floor {
        batch,
        connections,
        messages,
        send,
        read_archive,
        all: 1.0 / (1.0 / send + 1.0 / read_archive),
        send_by_ten,
        read_delete_by_ten,
        commits,
    })
}

/// Sends all messages, then reads and ends all: messages a second of each.
async fn through(
    place: &Place,
    connections: u32,
    batch: usize,
    messages: usize,
    end: End,
) -> Result<(f64, f64)> {
    let pool = place.pool_of(connections).await?;
    let queue = Queue {
        pool: &pool,
        batch,
        end,
    };
    queue.create().await?;
    let rates = (queue.send(messages).await?, queue.receive(messages).await?);
    queue.drop().await?;
    pool.close().await;
    Ok(rates)
}

/// Transactions that write a few bytes into the WAL and nothing else.
#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
async fn commits_per_second(place: &Place, connections: u32) -> Result<f64> {
    let pool = place.pool_of(connections).await?;
    let started = Instant::now();
    let mut writers = JoinSet::new();
    for _ in 0..connections {
        let pool = pool.clone();
        writers.spawn(async move {
            let mut session = pool.acquire().await?;
            let mut commits = 0_u64;
            while started.elapsed() < COMMITS {
                sqlx::query("select pg_logical_emit_message(true, 'bench', '')")
                    .execute(&mut *session)
                    .await?;
                commits += 1;
            }
            Result::Ok(commits)
        });
    }
    let mut commits = 0;
    while let Some(writer) = writers.join_next().await {
        commits += writer??;
    }
    let seconds = started.elapsed().as_secs_f64();
    pool.close().await;
    Ok(commits as f64 / seconds)
}
