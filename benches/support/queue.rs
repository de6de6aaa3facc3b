//! PGMQ alone: what the queue of a server can do at most.
//!
//! Needs nothing but std, sqlx, serde and tokio, so that other programs can include it.
#![allow(
    dead_code,
    reason = "each program that includes this uses a part of it"
)]

use std::{
    error::Error,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};

use pgflow::sqlx::{self, PgPool, types::Uuid};
use serde_json::{Value, json};
use tokio::task::JoinSet;

const QUEUE: &str = "bench_floor";

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// The way in which a batch ends after it was read.
#[derive(Debug, Clone, Copy)]
pub(crate) enum End {
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

/// The path of messages through a queue: over all sessions of the pool, in batches.
#[derive(Debug)]
pub(crate) struct Queue<'a> {
    pub(crate) pool: &'a PgPool,
    pub(crate) batch: usize,
    pub(crate) end: End,
}

impl Queue<'_> {
    /// Makes the queue, and sends a batch through each session, so that all know their statements.
    pub(crate) async fn create(&self) -> Result<()> {
        sqlx::query("select pgmq.create(queue_name => $1)")
            .bind(QUEUE)
            .execute(self.pool)
            .await?;
        let messages = self.batch * self.pool.size() as usize;
        self.send(messages).await?;
        self.receive(messages).await?;
        Ok(())
    }

    pub(crate) async fn drop(&self) -> Result<()> {
        sqlx::query("select pgmq.drop_queue(queue_name => $1)")
            .bind(QUEUE)
            .execute(self.pool)
            .await?;
        Ok(())
    }

    /// Sends so many: messages a second.
    pub(crate) async fn send(&self, messages: usize) -> Result<f64> {
        let started = Instant::now();
        let next = Arc::new(AtomicUsize::new(0));
        let mut senders = JoinSet::new();
        for _ in 0..self.pool.size() {
            let (pool, batch, next) = (self.pool.clone(), self.batch, Arc::clone(&next));
            senders.spawn(async move {
                loop {
                    let from = next.fetch_add(batch, Ordering::Relaxed);
                    if from >= messages {
                        return Result::Ok(());
                    }
                    let bodies: Vec<Value> =
                        (from..messages.min(from + batch)).map(message).collect();
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
        Ok(per_second(messages, started))
    }

    /// Reads and ends so many: messages a second.
    pub(crate) async fn receive(&self, messages: usize) -> Result<f64> {
        let started = Instant::now();
        let left = Arc::new(AtomicUsize::new(messages));
        let mut receivers = JoinSet::new();
        for _ in 0..self.pool.size() {
            let (pool, batch, end, left) =
                (self.pool.clone(), self.batch, self.end, Arc::clone(&left));
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
            0 => Ok(per_second(messages, started)),
            left => Err(format!("{left} messages were not read").into()),
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
fn per_second(messages: usize, since: Instant) -> f64 {
    messages as f64 / since.elapsed().as_secs_f64()
}

/// Like the messages of pgflow.
fn message(n: usize) -> Value {
    json!({"flow_slug": "bench_one", "run_id": Uuid::from_u128(n as u128), "step_slug": "only", "task_index": 0})
}
