//! Locks that a panic does not close.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// For what is as good as it was before a panic: nothing is changed by halves under the lock.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
