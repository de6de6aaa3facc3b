//! The effects of the handlers: the truth that the tables are compared with.

use std::collections::BTreeMap;
use std::future::pending;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pgflow::prelude::*;
use sqlx::PgPool;
use tokio::sync::watch;
use tokio::task::yield_now;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// The number of other attempts that a long handler waits for.
const LONG: usize = 60;

/// The behaviour of a handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Short,
    /// Runs while many others do; ends when its worker is asked to stop.
    Long,
    /// Its first attempt that ends fails.
    Flaky,
    /// Ignores that its worker is asked to stop, where the round allows that.
    Deaf,
}

impl Kind {
    pub(super) fn of(item: u32) -> Self {
        match item % 40 {
            3 | 13 | 23 => Self::Long,
            5 | 15 => Self::Flaky,
            37 => Self::Deaf,
            _ => Self::Short,
        }
    }
}

/// The fate of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seen {
    /// Still running, or dropped.
    Entered,
    Failed,
    Returned,
}

type Key = (Uuid, String, i32);

#[derive(Debug, Clone)]
pub(super) struct Effects {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    attempts: Mutex<BTreeMap<Key, Vec<Seen>>>,
    entered: watch::Sender<usize>,
    may_be_deaf: AtomicBool,
    /// Long handlers wait for nobody any more.
    hurry: CancellationToken,
}

impl Effects {
    pub(super) fn new() -> Self {
        Self {
            inner: Arc::new(Inner {
                attempts: Mutex::default(),
                entered: watch::Sender::new(0),
                may_be_deaf: AtomicBool::new(false),
                hurry: CancellationToken::new(),
            }),
        }
    }

    pub(super) fn let_some_be_deaf(&self, may: bool) {
        self.inner.may_be_deaf.store(may, Ordering::SeqCst);
    }

    pub(super) fn hurry(&self) {
        self.inner.hurry.cancel();
    }

    pub(super) fn entered(&self) -> usize {
        *self.inner.entered.borrow()
    }

    pub(super) async fn until_entered(&self, count: usize) {
        let mut entered = self.inner.entered.subscribe();
        let seen = entered.wait_for(|entered| *entered >= count).await;
        seen.expect("the sender lives as long as this");
    }

    /// The handler of every map task.
    pub(super) async fn work(&self, item: u32, ctx: &StepContext) -> StepResult<u32> {
        self.enter(ctx);
        match Kind::of(item) {
            Kind::Flaky if !self.has_failed(ctx) => {
                self.end(ctx, Seen::Failed);
                return Err(StepError::retry_after(Duration::ZERO, "flaky"));
            }
            Kind::Deaf if self.inner.may_be_deaf.load(Ordering::SeqCst) => pending().await,
            Kind::Long => {
                tokio::select! {
                    () = ctx.cancelled() => {}
                    () = self.until_entered(self.entered() + LONG) => {}
                    () = self.inner.hurry.cancelled() => {}
                }
                // It has something to put in order before it ends.
                for _ in 0..20 {
                    yield_now().await;
                }
            }
            Kind::Short | Kind::Flaky | Kind::Deaf => yield_now().await,
        }
        self.end(ctx, Seen::Returned);
        Ok(item)
    }

    pub(super) fn sum(&self, items: &[u32], ctx: &StepContext) -> u64 {
        self.enter(ctx);
        self.end(ctx, Seen::Returned);
        items.iter().copied().map(u64::from).sum()
    }

    fn enter(&self, ctx: &StepContext) {
        let mut attempts = self.inner.attempts.lock().expect("no panic while noting");
        attempts.entry(key(ctx)).or_default().push(Seen::Entered);
        drop(attempts);
        self.inner.entered.send_modify(|entered| *entered += 1);
    }

    fn has_failed(&self, ctx: &StepContext) -> bool {
        let attempts = self.inner.attempts.lock().expect("no panic while noting");
        attempts[&key(ctx)].contains(&Seen::Failed)
    }

    fn end(&self, ctx: &StepContext, seen: Seen) {
        let mut attempts = self.inner.attempts.lock().expect("no panic while noting");
        let attempts = attempts.get_mut(&key(ctx)).expect("it was entered");
        *attempts.last_mut().expect("it was entered") = seen;
    }

    /// Fails the test unless each task's row says what its attempts did: how the last one ended,
    /// and how many there were except those whose handlers were dropped. Returns the number of the
    /// latter.
    pub(super) async fn compare(&self, pool: &PgPool) -> usize {
        let rows: Vec<(Uuid, String, i32, String, i32)> = sqlx::query_as(
            "select run_id, step_slug, task_index, status, attempts_count - uncounted_attempts from pgflow.step_tasks",
        )
        .fetch_all(pool)
        .await
        .expect("tasks can be read");
        let attempts = self.inner.attempts.lock().expect("no panic while noting");
        let mut wrong = Vec::new();
        let mut all_dropped = 0;
        for (run_id, step, index, status, counted) in rows {
            let key = (run_id, step, index);
            let made = attempts.get(&key).map_or(&[][..], Vec::as_slice);
            let expected = match made.last() {
                None | Some(Seen::Failed | Seen::Entered) => "queued",
                Some(Seen::Returned) => "completed",
            };
            let dropped = made
                .iter()
                .filter(|seen| matches!(seen, Seen::Entered))
                .count();
            all_dropped += dropped;
            if status != expected || usize::try_from(counted) != Ok(made.len() - dropped) {
                wrong.push(format!(
                    "{key:?} is {status} with {counted} attempts; its handler did {made:?}"
                ));
            }
        }
        assert!(
            wrong.is_empty(),
            "{} tasks: {:#?}",
            wrong.len(),
            &wrong[..wrong.len().min(5)]
        );
        all_dropped
    }

    /// Returns the number of attempts of all tasks together.
    pub(super) fn attempts(&self) -> usize {
        let attempts = self.inner.attempts.lock().expect("no panic while noting");
        attempts.values().map(Vec::len).sum()
    }
}

fn key(ctx: &StepContext) -> Key {
    (ctx.run_id(), ctx.step_slug().to_owned(), ctx.task_index())
}
