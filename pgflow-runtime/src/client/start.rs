//! Starts runs on any connection, also inside a transaction.

use std::future::Future;

use sqlx::PgExecutor;
use uuid::Uuid;

use super::ClientError;
use crate::{
    flow::{Flow, encode},
    sql::run::start_flow,
};

/// Starts runs of a flow on a pool, a connection or inside a transaction of the caller's.
///
/// Inside a transaction the run exists, and its first tasks can be claimed, once that transaction commits.
///
/// ```no_run
/// # async fn example<Audit>(pool: sqlx::PgPool, input: Audit::Input) -> Result<(), Box<dyn std::error::Error>>
/// # where Audit: pgflow_runtime::flow::Flow {
/// use pgflow_runtime::client::{Client, StartFlow};
///
/// let mut transaction = pool.begin().await?;
/// sqlx::query("insert into orders default values").execute(&mut *transaction).await?;
/// let run_id = Audit::start(&mut *transaction, &input).await?;
/// transaction.commit().await?;
///
/// let output = Client::new(pool).run::<Audit>(run_id).wait().await?;
/// # Ok(())
/// # }
/// ```
pub trait StartFlow: Flow {
    /// Starts a run and returns its id.
    fn start<'c, E: PgExecutor<'c> + 'c>(
        executor: E,
        input: &Self::Input,
    ) -> impl Future<Output = Result<Uuid, ClientError>> + Send {
        start::<Self>(executor, None, input)
    }

    /// Starts a run under an id of the caller's choice; does nothing when that run exists already.
    fn start_with_id<'c, E: PgExecutor<'c> + 'c>(
        executor: E,
        run_id: Uuid,
        input: &Self::Input,
    ) -> impl Future<Output = Result<Uuid, ClientError>> + Send {
        start::<Self>(executor, Some(run_id), input)
    }
}

impl<F: Flow> StartFlow for F {}

async fn start<F: Flow>(
    executor: impl PgExecutor<'_>,
    run_id: Option<Uuid>,
    input: &F::Input,
) -> Result<Uuid, ClientError> {
    let flow = F::DEFINITION.slug;
    let input = encode(input).map_err(|source| ClientError::UnstorableInput { flow, source })?;
    Ok(start_flow(executor, flow, &input, run_id).await?)
}
