//! A bound for the bytes of outputs that wait to be recorded.

use std::sync::Arc;

use sqlx::PgPool;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::per_pool::{OfPool, PerPool};

/// One per pool: all workers of a process that share it record over it.
static ALL: PerPool<Budget> = PerPool::new();

/// The most bytes of outputs that wait. While one is recorded it is in memory about four times.
const MOST_BYTES: usize = 16 * 1024 * 1024;
/// Outputs below that cost nothing: their number is bounded.
const SMALL: usize = 4 * 1024;
/// In so many bytes the budget is counted.
const UNIT: usize = 1024;

#[derive(Debug)]
pub(crate) struct Budget {
    pool: PgPool,
    units: Arc<Semaphore>,
}

/// An output's share of the budget, until this is dropped.
#[derive(Debug, Default)]
pub(crate) struct Reserved(
    #[expect(dead_code, reason = "dropped for its effect")] Option<OwnedSemaphorePermit>,
);

impl OfPool for Budget {
    fn pool(&self) -> &PgPool {
        &self.pool
    }
}

impl Budget {
    pub(crate) fn of(pool: &PgPool) -> Arc<Self> {
        ALL.of(pool, |pool| Self {
            pool,
            units: Arc::new(Semaphore::new(MOST_BYTES / UNIT)),
        })
    }

    /// Waits until so many bytes may wait, first come, first served. More than the whole budget may
    /// wait alone.
    pub(crate) async fn reserve(&self, bytes: usize) -> Reserved {
        if bytes < SMALL {
            return Reserved::default();
        }
        let units = bytes.min(MOST_BYTES) / UNIT;
        let units = u32::try_from(units).unwrap_or(u32::MAX);
        // The semaphore is never closed.
        Reserved(Arc::clone(&self.units).acquire_many_owned(units).await.ok())
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use sqlx::postgres::PgPoolOptions;

    use super::*;

    fn budget() -> (PgPool, Arc<Budget>) {
        let pool = PgPoolOptions::new()
            .connect_lazy("postgres://nobody@127.0.0.1:1/none")
            .expect("a valid URL");
        let budget = Budget::of(&pool);
        (pool, budget)
    }

    #[tokio::test]
    async fn large_outputs_wait_for_those_before_them_and_small_ones_for_nobody() {
        let (_pool, budget) = budget();
        let half = MOST_BYTES / 2;
        let first = budget.reserve(half).await;
        let second = budget.reserve(half).await;
        assert!(budget.reserve(half).now_or_never().is_none());
        assert!(budget.reserve(SMALL - 1).now_or_never().is_some());
        drop(first);
        assert!(budget.reserve(half).now_or_never().is_some());
        drop(second);
    }

    #[tokio::test]
    async fn an_output_larger_than_the_budget_goes_alone() {
        let (_pool, budget) = budget();
        let small = budget.reserve(SMALL).await;
        assert!(budget.reserve(MOST_BYTES * 3).now_or_never().is_none());
        drop(small);
        assert!(budget.reserve(MOST_BYTES * 3).now_or_never().is_some());
    }

    #[tokio::test]
    async fn the_workers_of_a_pool_share_one_budget() {
        let (pool, budget) = budget();
        assert!(Arc::ptr_eq(&budget, &Budget::of(&pool.clone())));
    }
}
