//! Starts runs and waits for them.
//!
//! ```no_run
//! # async fn example<F>(pool: sqlx::PgPool, input: F::Input) -> Result<(), Box<dyn std::error::Error>>
//! # where F: pgflow_runtime::flow::Flow {
//! use std::time::Duration;
//! use pgflow_runtime::client::Client;
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
mod run_handle;
mod snapshot;
mod start;
mod wait;

use std::fmt;

use sqlx::PgPool;
use uuid::Uuid;

pub use error::{ClientError, RunError};
pub use run_handle::RunHandle;
pub use snapshot::{RunSnapshot, RunStatus, SkipReason, StepSnapshot, StepStatus, TaskCounts};
pub use start::StartFlow;
pub use wait::Wait;

use crate::{flow::Flow, worker::wake_flow};

/// Starts runs of any flow and finds them again. Cheap to clone.
#[derive(Clone)]
pub struct Client {
    pool: PgPool,
}

impl Client {
    /// A client that uses the pool for every call.
    pub fn new(pool: PgPool) -> Self {
        Self { pool }
    }

    /// Starts a run. A worker of the flow in this process looks for it at once, others within their poll interval.
    pub async fn start<F: Flow>(&self, input: &F::Input) -> Result<RunHandle<F>, ClientError> {
        let run_id = F::start(&self.pool, input).await?;
        wake_flow(F::DEFINITION.slug);
        Ok(self.run(run_id))
    }

    /// Starts a run under an id of the caller's choice. When that run exists already, nothing happens, and its handle is returned: so a call
    /// that may or may not have reached the database can be repeated.
    pub async fn start_with_id<F: Flow>(
        &self,
        run_id: Uuid,
        input: &F::Input,
    ) -> Result<RunHandle<F>, ClientError> {
        F::start_with_id(&self.pool, run_id, input).await?;
        wake_flow(F::DEFINITION.slug);
        Ok(self.run(run_id))
    }

    /// The handle of a run that was started before, here or elsewhere. Asks nothing of the database yet.
    pub fn run<F: Flow>(&self, run_id: Uuid) -> RunHandle<F> {
        RunHandle::new(self.pool.clone(), run_id)
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}
