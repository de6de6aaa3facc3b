//! The objects that a process keeps once for each pool.

use std::{
    ptr,
    sync::{Arc, Mutex, Weak},
};

use sqlx::PgPool;

use crate::lock::lock;

/// An object that is kept for a pool, and keeps the pool.
pub(crate) trait OfPool {
    fn pool(&self) -> &PgPool;
}

/// One `T` for each pool, until its last holder drops it.
#[derive(Debug)]
pub(crate) struct PerPool<T>(Mutex<Vec<Weak<T>>>);

impl<T: OfPool> PerPool<T> {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    /// That of a pool and all its clones; made if there is none.
    pub(crate) fn of(&self, pool: &PgPool, make: impl FnOnce(PgPool) -> T) -> Arc<T> {
        // Before the lock, so dropped after it: one of them may be the last to hold what it holds.
        let held: Vec<Arc<T>>;
        let mut all = lock(&self.0);
        all.retain(|one| one.strong_count() > 0);
        // Clones of a pool share its options. Those of a pool that is gone can't lie at the same
        // place: its pool is kept.
        let is_of_pool = |one: &Arc<T>| ptr::eq(one.pool().options(), pool.options());
        held = all.iter().filter_map(Weak::upgrade).collect();
        if let Some(one) = held.iter().find(|one| is_of_pool(one)) {
            return Arc::clone(one);
        }
        let one = Arc::new(make(pool.clone()));
        all.push(Arc::downgrade(&one));
        one
    }
}
