//! One run, seen from outside.

use std::{fmt, marker::PhantomData};

use sqlx::PgPool;
use uuid::Uuid;

use super::{ClientError, RunSnapshot, Wait};
use crate::{flow::Flow, sql::run::get_run_with_states};

/// A run of flow `F`. Cheap to clone; dropping it does nothing to the run.
pub struct RunHandle<F> {
    pool: PgPool,
    run_id: Uuid,
    listen: bool,
    flow: PhantomData<fn() -> F>,
}

impl<F: Flow> RunHandle<F> {
    pub(super) fn new(pool: PgPool, run_id: Uuid, listen: bool) -> Self {
        Self {
            pool,
            run_id,
            listen,
            flow: PhantomData,
        }
    }

    /// Waits until the run has ended, however long that takes, and returns its output. Await it, or set a
    /// [`timeout`](Wait::timeout) first.
    ///
    /// The database notifies of each end, which is then seen at once. Any number of waits share one connection for that, in addition to those of the
    /// pool; [`Client::listen`](super::Client::listen) does without. The run is also looked at from time to time, soon at first, then every 500 ms:
    /// so nothing depends on notifications, see also [`poll_interval`](Wait::poll_interval).
    pub fn wait(&self) -> Wait<F> {
        Wait::new(self.clone())
    }

    /// Reads the states of the run and of its steps, as they are now.
    pub async fn snapshot(&self) -> Result<RunSnapshot<F>, ClientError> {
        let json = get_run_with_states(&self.pool, self.run_id).await?;
        let json = json.ok_or(ClientError::NotFound {
            run_id: self.run_id,
        })?;
        RunSnapshot::read(self.run_id, &json)
    }
}

impl<F> RunHandle<F> {
    /// The run's id: store it to find the run again with [`Client::run`](super::Client::run).
    pub fn run_id(&self) -> Uuid {
        self.run_id
    }

    pub(super) fn pool(&self) -> &PgPool {
        &self.pool
    }

    pub(super) fn listens(&self) -> bool {
        self.listen
    }
}

impl<F> Clone for RunHandle<F> {
    fn clone(&self) -> Self {
        Self {
            pool: self.pool.clone(),
            run_id: self.run_id,
            listen: self.listen,
            flow: PhantomData,
        }
    }
}

impl<F> fmt::Debug for RunHandle<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunHandle")
            .field("run_id", &self.run_id)
            .finish_non_exhaustive()
    }
}
