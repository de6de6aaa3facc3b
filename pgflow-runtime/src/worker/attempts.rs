//! The attempts that a worker runs right now, so that they can be told when they have lost their meaning.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard},
};

use tokio_util::sync::CancellationToken;

use crate::{lock::lock, sql::complete::AttemptKey};

#[derive(Debug, Clone, Default)]
pub(crate) struct Attempts {
    running: Arc<Mutex<HashMap<AttemptKey, CancellationToken>>>,
}

/// An attempt that runs until this is dropped.
#[derive(Debug)]
pub(crate) struct RunningAttempt {
    attempts: Attempts,
    key: AttemptKey,
}

impl Attempts {
    /// Makes the attempt known; `cancelled` is what its handler looks at.
    pub(crate) fn enter(&self, key: AttemptKey, cancelled: CancellationToken) -> RunningAttempt {
        self.lock().insert(key.clone(), cancelled);
        RunningAttempt {
            attempts: self.clone(),
            key,
        }
    }

    pub(crate) fn keys(&self) -> Vec<AttemptKey> {
        self.lock().keys().cloned().collect()
    }

    /// Tells the attempt's handler to stop. False when it has ended, or was told before.
    pub(crate) fn cancel(&self, key: &AttemptKey) -> bool {
        let cancelled = self.lock().get(key).cloned();
        // Not under the lock: it wakes whoever waits.
        cancelled.is_some_and(|cancelled| {
            let is_news = !cancelled.is_cancelled();
            cancelled.cancel();
            is_news
        })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<AttemptKey, CancellationToken>> {
        lock(&self.running)
    }
}

impl Drop for RunningAttempt {
    fn drop(&mut self) {
        self.attempts.lock().remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn key(attempt: i32) -> AttemptKey {
        AttemptKey {
            run_id: Uuid::nil(),
            step_slug: "act",
            task_index: 0,
            attempt,
        }
    }

    #[test]
    fn an_attempt_is_told_once_and_only_while_it_runs() {
        let attempts = Attempts::default();
        let (first, second) = (CancellationToken::new(), CancellationToken::new());
        let running = attempts.enter(key(1), first.clone());
        let _other = attempts.enter(key(2), second.clone());
        assert!(attempts.cancel(&key(1)));
        assert!(!attempts.cancel(&key(1)), "told before");
        assert!(first.is_cancelled() && !second.is_cancelled());
        assert_eq!(attempts.keys().len(), 2);
        drop(running);
        assert!(!attempts.cancel(&key(1)));
        assert_eq!(attempts.keys(), [key(2)]);
    }
}
