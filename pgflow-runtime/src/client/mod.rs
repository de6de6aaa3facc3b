//! Starts runs, waits for them and follows them.
//!
//! ```no_run
//! # async fn example<F>(pool: sqlx::PgPool, input: F::Input) -> Result<(), Box<dyn std::error::Error>>
//! # where F: pgflow_runtime::flow::Flow {
//! use std::time::Duration;
//! # use pgflow_runtime as pgflow;
//! use pgflow::client::Client;
//!
//! let client = Client::new(pool);
//! let run = client.start::<F>(&input).await?;
//! let output = run.wait().timeout(Duration::from_secs(60)).await?;
//! # Ok(())
//! # }
//! ```
//!
//! To start a run together with other changes of a transaction, see [`StartFlow`].

mod error;
mod events;
mod hints;
mod run_handle;
mod snapshot;
mod start;
mod wait;
mod watch;

use std::fmt;

use sqlx::PgPool;
use uuid::Uuid;

pub use crate::flow::RunStatus;
pub use error::{ClientError, RunError};
pub use events::{Follow, RunEvent, RunEvents};
pub use run_handle::RunHandle;
pub use snapshot::{RunSnapshot, SkipReason, StepSnapshot, StepStatus, TaskCounts};
pub use start::{StartFlow, StartOn};
pub use wait::Wait;

use crate::{
    flow::{BoxFuture, Flow},
    sql::limit::on_pool,
    worker::wake_flow,
};

/// Starts runs of any flow and finds them again. Cheap to clone.
#[derive(Clone)]
pub struct Client {
    pool: PgPool,
    listen: bool,
}

impl Client {
    /// A client that uses the pool for every call.
    pub fn new(pool: PgPool) -> Self {
        Self { pool, listen: true }
    }

    /// Sets whether the database's notifications end a [`wait`](RunHandle::wait) and trigger the
    /// snapshots of [`events`](RunHandle::events); yes by default. While anything waits, and for
    /// some seconds more, they arrive over one connection per process and pool. It is made as those
    /// of the pool are, in addition to them.
    ///
    /// Disable it if no such connection may be made, or if it is of no use: behind a pooler in
    /// transaction mode, and with the event level `off` or Supabase's Realtime, which send no
    /// notifications. Then both only poll. It applies to the handles that this client makes from
    /// now on.
    #[must_use]
    pub fn listen(mut self, listen: bool) -> Self {
        self.listen = listen;
        self
    }

    /// Starts a run. Idle workers of the flow are notified of it, in whatever process they run.
    // Boxed for the reason that `StartFlow` gives; so are the functions below.
    pub fn start<'c, F: Flow>(
        &'c self,
        input: &'c F::Input,
    ) -> BoxFuture<'c, Result<RunHandle<F>, ClientError>> {
        Box::pin(async move {
            let run_id = on_pool!(&self.pool, connection => F::start(connection, input))?;
            wake_flow(F::DEFINITION.slug);
            Ok(self.run(run_id))
        })
    }

    /// Starts a run under an id of the caller's choice. When that run exists already, nothing
    /// happens, and its handle is returned: so a call that may or may not have reached the database
    /// can be repeated.
    pub fn start_with_id<'c, F: Flow>(
        &'c self,
        run_id: Uuid,
        input: &'c F::Input,
    ) -> BoxFuture<'c, Result<RunHandle<F>, ClientError>> {
        Box::pin(async move {
            on_pool!(&self.pool, connection => F::start_with_id(connection, run_id, input))?;
            wake_flow(F::DEFINITION.slug);
            Ok(self.run(run_id))
        })
    }

    /// Starts a run for each input, in one call, which costs far less than a call for each; returns
    /// their handles in the order of the inputs. Without inputs it asks nothing of the database.
    ///
    /// ```no_run
    /// # async fn example<F>(pool: sqlx::PgPool, inputs: Vec<F::Input>) -> Result<(), Box<dyn std::error::Error>>
    /// # where F: pgflow_runtime::flow::Flow {
    /// # use pgflow_runtime as pgflow;
    /// use pgflow::client::Client;
    ///
    /// let client = Client::new(pool);
    /// for thousand in inputs.chunks(1000) {
    ///     for run in client.start_many::<F>(thousand).await? {
    ///         println!("started run {}", run.run_id());
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// The call is one statement: when it returns, all runs exist, and when it is refused, none
    /// does. There is no limit on the number of inputs. But all of them are in memory together,
    /// here and in Postgres, which accepts at most 1 GB in one call, and no worker sees the first
    /// run before the last one is written. So split more than some thousand inputs, or more than
    /// some MiB. Each call on its own is then all or none; to start them all or none together, use
    /// [`StartFlow::start_many`] in a transaction.
    ///
    /// # Errors
    ///
    /// As for [`start`](Self::start). [`ClientError::UnstorableInput`] and
    /// [`ClientError::BadInput`] say which input is meant. Should the connection break during the
    /// call, the runs may exist or not: where that matters, use
    /// [`start_many_with_ids`](Self::start_many_with_ids).
    pub fn start_many<'c, F: Flow>(
        &'c self,
        inputs: &'c [F::Input],
    ) -> BoxFuture<'c, Result<Vec<RunHandle<F>>, ClientError>> {
        Box::pin(async move {
            if inputs.is_empty() {
                return Ok(Vec::new());
            }
            let run_ids = on_pool!(&self.pool, connection => F::start_many(connection, inputs))?;
            Ok(self.started(run_ids))
        })
    }

    /// As [`start_many`](Self::start_many), under ids of the caller's choice. Those that are ids of
    /// runs already change nothing, whatever their input, and their handles are returned at their
    /// places: so a call that may or may not have reached the database can be repeated.
    ///
    /// # Errors
    ///
    /// As for [`start_many`](Self::start_many), and [`ClientError::Refused`] when one of the ids is
    /// that of another flow's run. No run is started then.
    pub fn start_many_with_ids<'c, F: Flow>(
        &'c self,
        runs: &'c [(Uuid, F::Input)],
    ) -> BoxFuture<'c, Result<Vec<RunHandle<F>>, ClientError>> {
        Box::pin(async move {
            if runs.is_empty() {
                return Ok(Vec::new());
            }
            let run_ids =
                on_pool!(&self.pool, connection => F::start_many_with_ids(connection, runs))?;
            Ok(self.started(run_ids))
        })
    }

    fn started<F: Flow>(&self, run_ids: Vec<Uuid>) -> Vec<RunHandle<F>> {
        wake_flow(F::DEFINITION.slug);
        run_ids.into_iter().map(|run_id| self.run(run_id)).collect()
    }

    /// The handle of a run that was started before, here or elsewhere. Asks nothing of the database
    /// yet.
    pub fn run<F: Flow>(&self, run_id: Uuid) -> RunHandle<F> {
        RunHandle::new(self.pool.clone(), run_id, self.listen)
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("listen", &self.listen)
            .finish_non_exhaustive()
    }
}
