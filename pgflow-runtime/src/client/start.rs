//! Starts runs on any connection, also inside a transaction.

use sqlx::PgExecutor;
use uuid::Uuid;

use super::ClientError;
use crate::{
    flow::{BoxFuture, Flow, encode},
    sql::run::{start_flow, start_flows},
};

/// Starts runs of a flow on a pool, a connection or inside a transaction of the caller's.
///
/// Inside a transaction the run exists, and its first tasks can be claimed, once that transaction
/// commits.
///
/// The run follows the definition that the database stores, which a worker of the flow has put
/// there, and not the one that this program was compiled with: during a rollout programs of both
/// exist. They are compared when a worker starts; a flow of another shape has another slug.
///
/// ```no_run
/// # async fn example<Audit>(pool: sqlx::PgPool, input: Audit::Input) -> Result<(), Box<dyn std::error::Error>>
/// # where Audit: pgflow_runtime::flow::Flow {
/// # use pgflow_runtime as pgflow;
/// use pgflow::client::{Client, StartFlow};
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
// An opaque future would have the bounds of its function, and each that fails be an error at the
// call, at its `.await` and at the argument.
pub trait StartFlow: Flow {
    /// Starts a run and returns its id.
    fn start<'c, E: StartOn<'c> + 'c>(
        executor: E,
        input: &'c Self::Input,
    ) -> BoxFuture<'c, Result<Uuid, ClientError>> {
        Box::pin(start::<Self>(executor, None, input))
    }

    /// Starts a run under an id of the caller's choice; does nothing when that run exists already
    /// with the same input.
    ///
    /// With another input it is refused
    /// ([`InvalidArgument`](crate::sql::RefusalCode::InvalidArgument)).
    fn start_with_id<'c, E: StartOn<'c> + 'c>(
        executor: E,
        run_id: Uuid,
        input: &'c Self::Input,
    ) -> BoxFuture<'c, Result<Uuid, ClientError>> {
        Box::pin(start::<Self>(executor, Some(run_id), input))
    }

    /// Starts a run for each input and returns their ids, in the order of the inputs. See
    /// [`Client::start_many`](super::Client::start_many) for what a call can take and what it does
    /// when an input is refused.
    ///
    /// ```no_run
    /// # async fn example<Audit>(pool: sqlx::PgPool, inputs: Vec<Audit::Input>) -> Result<(), Box<dyn std::error::Error>>
    /// # where Audit: pgflow_runtime::flow::Flow {
    /// # use pgflow_runtime as pgflow;
    /// use pgflow::client::StartFlow;
    ///
    /// let mut transaction = pool.begin().await?;
    /// for thousand in inputs.chunks(1000) {
    ///     Audit::start_many(&mut *transaction, thousand).await?;
    /// }
    /// transaction.commit().await?; // all of them, or none
    /// # Ok(())
    /// # }
    /// ```
    fn start_many<'c, E: StartOn<'c> + 'c>(
        executor: E,
        inputs: &'c [Self::Input],
    ) -> BoxFuture<'c, Result<Vec<Uuid>, ClientError>> {
        Box::pin(start_many::<Self>(executor, None, inputs))
    }

    /// As [`start_many`](Self::start_many), under ids of the caller's choice; does nothing for
    /// those of runs that exist already with the same input.
    fn start_many_with_ids<'c, E: StartOn<'c> + 'c>(
        executor: E,
        runs: &'c [(Uuid, Self::Input)],
    ) -> BoxFuture<'c, Result<Vec<Uuid>, ClientError>> {
        let run_ids = runs.iter().map(|(run_id, _)| *run_id).collect();
        let inputs = runs.iter().map(|(_, input)| input);
        Box::pin(start_many::<Self>(executor, Some(run_ids), inputs))
    }
}

impl<F: Flow> StartFlow for F {}

/// An executor that a run can be started on: every executor of Postgres.
#[diagnostic::on_unimplemented(
    message = "a run can't be started on `{Self}`",
    label = "expected a `&PgPool`, a `&mut PgConnection`, or `&mut *transaction`",
    note = "a pool or a connection is borrowed, as in `start(&pool, ..)`; a transaction is borrowed again, as in `start(&mut *transaction, ..)`"
)]
pub trait StartOn<'c>: PgExecutor<'c> {}

#[diagnostic::do_not_recommend]
impl<'c, E: PgExecutor<'c>> StartOn<'c> for E {}

async fn start<F: Flow>(
    executor: impl PgExecutor<'_>,
    run_id: Option<Uuid>,
    input: &F::Input,
) -> Result<Uuid, ClientError> {
    let flow = F::DEFINITION.slug;
    let input = encode(input).map_err(|source| ClientError::UnstorableInput {
        flow,
        index: None,
        source,
    })?;
    Ok(start_flow(executor, flow, &input, run_id).await?)
}

async fn start_many<'i, F: Flow>(
    executor: impl PgExecutor<'_>,
    run_ids: Option<Vec<Uuid>>,
    inputs: impl IntoIterator<Item = &'i F::Input>,
) -> Result<Vec<Uuid>, ClientError> {
    let flow = F::DEFINITION.slug;
    let inputs = inputs.into_iter().enumerate().map(|(index, input)| {
        encode(input).map_err(|source| ClientError::UnstorableInput {
            flow,
            index: Some(index),
            source,
        })
    });
    let inputs = inputs.collect::<Result<Vec<_>, _>>()?;
    if inputs.is_empty() {
        return Ok(Vec::new());
    }
    Ok(start_flows(executor, flow, &inputs, run_ids.as_deref()).await?)
}
