//! What the queue and the disk could do at most: the same messages through PGMQ alone, and bare commits.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use pgflow::sqlx::{self, PgPool, types::Uuid};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::{Result, options::Options, server::Place};

const QUEUE: &str = "bench_floor";
/// How long commits are counted.
const COMMITS: Duration = Duration::from_secs(1);
/// What figures of other places were measured with: connections and messages of a batch.
const ELSEWHERE: (u32, usize) = (4, 10);

/// What came out, per second.
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

/// What is done with a batch that was read.
#[derive(Debug, Clone, Copy)]
enum End {
    Archive,
    Delete,
}

impl End {
    fn sql(self) -> &'static str {
        match self {
            Self::Archive => {
                "select count(*) from pgmq.archive(queue_name => $1, msg_ids => $2::bigint[])"
            }
            Self::Delete => {
                "select count(*) from pgmq.delete(queue_name => $1, msg_ids => $2::bigint[])"
            }
        }
    }
}

/// Measures with the worker's batches and connections, over so many messages.
pub(crate) async fn floor(place: &Place, options: &Options, messages: usize) -> Result<Floor> {
    let connections = options.worker.connections * options.workers;
    let batch = options.worker.concurrency;
    let (send, read_archive) = queue(place, connections, batch, messages, End::Archive).await?;
    let (ten_connections, ten) = ELSEWHERE;
    let (send_by_ten, read_delete_by_ten) =
        queue(place, ten_connections, ten, messages, End::Delete).await?;
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
#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
async fn queue(
    place: &Place,
    connections: u32,
    batch: usize,
    messages: usize,
    end: End,
) -> Result<(f64, f64)> {
    let pool = place.pool_of(connections).await?;
    sqlx::query("select pgmq.create(queue_name => $1)")
        .bind(QUEUE)
        .execute(&pool)
        .await?;
    // Every session once, so that all know their statements.
    let warm_up = batch * connections as usize;
    send(&pool, warm_up, batch).await?;
    receive(&pool, warm_up, batch, end).await?;

    let at = Instant::now();
    send(&pool, messages, batch).await?;
    let sending = at.elapsed().as_secs_f64();
    let at = Instant::now();
    receive(&pool, messages, batch, end).await?;
    let receiving = at.elapsed().as_secs_f64();

    sqlx::query("select pgmq.drop_queue(queue_name => $1)")
        .bind(QUEUE)
        .execute(&pool)
        .await?;
    pool.close().await;
    Ok((messages as f64 / sending, messages as f64 / receiving))
}

/// Like the messages of pgflow.
fn message() -> Value {
    json!({"flow_slug": "bench_one", "run_id": Uuid::from_u128(fastrand::u128(..)), "step_slug": "only", "task_index": 0})
}

async fn send(pool: &PgPool, messages: usize, batch: usize) -> Result<()> {
    let next = Arc::new(AtomicUsize::new(0));
    let mut senders = JoinSet::new();
    for _ in 0..pool.size() {
        let (pool, next) = (pool.clone(), Arc::clone(&next));
        senders.spawn(async move {
            loop {
                let from = next.fetch_add(batch, Ordering::Relaxed);
                if from >= messages {
                    return Result::Ok(());
                }
                let bodies: Vec<Value> = (from..messages.min(from + batch))
                    .map(|_| message())
                    .collect();
                sqlx::query(
                    "select count(*) from pgmq.send_batch(queue_name => $1, msgs => $2::jsonb[])",
                )
                .bind(QUEUE)
                .bind(bodies)
                .execute(&pool)
                .await?;
            }
        });
    }
    while let Some(sender) = senders.join_next().await {
        sender??;
    }
    Ok(())
}

async fn receive(pool: &PgPool, messages: usize, batch: usize, end: End) -> Result<()> {
    let left = Arc::new(AtomicUsize::new(messages));
    let mut receivers = JoinSet::new();
    for _ in 0..pool.size() {
        let (pool, left) = (pool.clone(), Arc::clone(&left));
        receivers.spawn(async move {
            while left.load(Ordering::Relaxed) > 0 {
                let ids: Vec<i64> = sqlx::query_scalar(
                    "select msg_id from pgmq.read(queue_name => $1, vt => 60, qty => $2)",
                )
                .bind(QUEUE)
                .bind(i32::try_from(batch)?)
                .fetch_all(&pool)
                .await?;
                if ids.is_empty() {
                    // What is left is in the hands of the others.
                    return Result::Ok(());
                }
                let ended: i64 = sqlx::query_scalar(end.sql())
                    .bind(QUEUE)
                    .bind(&ids)
                    .fetch_one(&pool)
                    .await?;
                if usize::try_from(ended) != Ok(ids.len()) {
                    return Err(format!("{ended} of {} messages were there", ids.len()).into());
                }
                left.fetch_sub(ids.len(), Ordering::Relaxed);
            }
            Ok(())
        });
    }
    while let Some(receiver) = receivers.join_next().await {
        receiver??;
    }
    match left.load(Ordering::Relaxed) {
        0 => Ok(()),
        left => Err(format!("{left} messages were not read").into()),
    }
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
