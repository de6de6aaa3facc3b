//! From a definition to a registered worker: the only way in which a definition gets into the database.
//!
//! In this order: the definition and the options are checked in the process; the database is reached, what its role may do and its migrations
//! are checked; then, in one transaction, the definition is compiled or verified, a function that is out of service is refused, and the
//! function and the worker are registered. So a start that fails leaves nothing behind.

mod error;

use pgflow_definition::FlowDefinition;
use serde_json::{Value, json};
use sqlx::{Connection, PgConnection, PgPool};
use tracing::{info, warn};
use uuid::Uuid;

pub use error::{FunctionDisabled, Mismatch, MissingRights, StartupError};

use crate::{
    migrate::{self, NotReadyError},
    sql::{
        definition::{Compilation, CompileStatus, MismatchKind, ensure_flow_compiled},
        rights,
        worker::{Registration, disabled, environment, register_worker, track_worker_function},
    },
    worker::WorkerOptions,
};

/// A worker that may claim.
#[derive(Debug)]
pub(crate) struct Registered {
    pub(crate) worker_id: Uuid,
    pub(crate) queue_name: String,
    pub(crate) compile_status: CompileStatus,
}

/// What startup tells the database about a flow.
struct Plan<'a> {
    definition: &'a FlowDefinition<'static>,
    shape: Value,
    routes: Value,
}

/// Registers a worker for all steps of a flow with one queue.
pub(crate) async fn start(
    pool: &PgPool,
    definition: &FlowDefinition<'static>,
    options: &WorkerOptions,
) -> Result<Registered, StartupError> {
    let plan = Plan::new(definition)?;
    let problems = options.problems();
    if !problems.is_empty() {
        return Err(StartupError::InvalidOptions { problems });
    }
    let mut connection = pool.acquire().await.map_err(StartupError::Connect)?;
    if options.migrate {
        migrate::migrate(pool).await?;
    }
    permitted(&mut connection).await?;
    ready(pool, &mut connection).await?;
    register(&mut connection, &plan, &options.function_name).await
}

impl<'a> Plan<'a> {
    fn new(definition: &'a FlowDefinition<'static>) -> Result<Self, StartupError> {
        let invalid = |problems| StartupError::InvalidDefinition {
            flow: definition.slug.to_owned(),
            problems,
        };
        let shape = definition.shape().map_err(invalid)?;
        let routes = definition.route_map().map_err(invalid)?;
        let routes = routes
            .iter()
            .map(|route| json!({"step": route.step, "queue": route.queue}))
            .collect();
        Ok(Self {
            definition,
            shape,
            routes,
        })
    }
}

/// Checks that the role may do all that a worker does, also what it does only when something fails or when it stops.
async fn permitted(connection: &mut PgConnection) -> Result<(), StartupError> {
    let missing = rights::missing(connection).await?;
    let Some(first) = missing.first() else {
        return Ok(());
    };
    Err(MissingRights {
        role: first.role.clone(),
        rights: missing
            .iter()
            .map(|missing| missing.right.clone())
            .collect(),
    }
    .into())
}

/// Checks that the database's migrations are those of this release; a local database that is behind is migrated.
async fn ready(pool: &PgPool, connection: &mut PgConnection) -> Result<(), StartupError> {
    match migrate::check_installed(connection).await {
        Err(error @ NotReadyError::DatabaseOlder { .. }) => {
            if environment(&mut *connection).await? != "local" {
                return Err(error.into());
            }
            info!("the local database is behind, it is migrated");
            migrate::migrate(pool).await?;
            migrate::check_installed(connection).await?;
        }
        checked => {
            checked?;
        }
    }
    Ok(())
}

/// Compiles and registers in one transaction: when anything is refused, not even a definition that was missing stays.
async fn register(
    connection: &mut PgConnection,
    plan: &Plan<'_>,
    function_name: &str,
) -> Result<Registered, StartupError> {
    let definition = plan.definition;
    let mut transaction = connection.begin().await?;
    let compilation = ensure_flow_compiled(
        &mut *transaction,
        definition.slug,
        &plan.shape,
        definition.queue_mode.as_str(),
        &plan.routes,
    )
    .await?;
    let compile_status = accept(definition.slug, compilation)?;
    if let Some(disabled) = disabled(&mut *transaction, function_name).await? {
        return Err(FunctionDisabled {
            function_name: function_name.to_owned(),
            since: disabled.since,
            reason: disabled.reason,
        }
        .into());
    }
    track_worker_function(&mut *transaction, function_name).await?;
    let worker_id = Uuid::now_v7();
    let queue_name = definition.default_queue();
    let flow_input_steps: Vec<&str> = definition
        .steps
        .iter()
        .filter(|step| step.needs_flow_input)
        .map(|step| step.slug)
        .collect();
    register_worker(
        &mut *transaction,
        &Registration {
            worker_id,
            function_name,
            flow_slug: definition.slug,
            step_slug: None,
            queue_name: &queue_name,
            flow_input_steps: &flow_input_steps,
        },
    )
    .await?;
    transaction.commit().await?;
    Ok(Registered {
        worker_id,
        queue_name,
        compile_status,
    })
}

fn accept(flow: &str, compilation: Compilation) -> Result<CompileStatus, StartupError> {
    for option in &compilation.options_differ {
        warn!(
            flow,
            difference = option,
            "an option differs from the database, whose value applies; operators change it there"
        );
    }
    if compilation.status != CompileStatus::Mismatch {
        return Ok(compilation.status);
    }
    let mismatch = Mismatch {
        flow: flow.to_owned(),
        differences: compilation.differences,
    };
    Err(match compilation.mismatch_kind {
        Some(MismatchKind::Routing) => StartupError::RoutingMismatch(mismatch),
        Some(MismatchKind::Shape) | None => StartupError::ShapeMismatch(mismatch),
    })
}

#[cfg(test)]
mod tests;
