//! From a definition to a registered worker: the only way in which a definition reaches the
//! database.
//!
//! The process first checks the definition and the options. Then it connects to the database and
//! checks the rights of its role and the migrations. Then, in one transaction, the database
//! compiles or verifies the definition, refuses a function that is out of service, and registers
//! the function and the worker. So a start that fails leaves nothing behind.
//!
//! A production database never changes a stored definition. A local one replaces it after its
//! workers have stopped: they are asked to, and the start waits for them, at most for
//! [`drain_timeout`](crate::worker::FlowWorker::drain_timeout). All their data, including runs, is
//! deleted with the old definition.

mod drain;
mod error;
mod plan;

use std::time::Duration;

use sqlx::{Connection, PgConnection, PgPool};
use tracing::{debug, info, warn};
use uuid::Uuid;

use drain::{Draining, Wait};
pub use error::{FunctionDisabled, Mismatch, MissingRights, StartupError};
use plan::Plan;
pub(crate) use plan::Target;

pub use crate::sql::definition::LiveWorker;
use crate::{
    migrate::{self, NotReadyError, Release},
    sql::{
        coverage::is_serving,
        definition::{Compilation, CompileStatus, MismatchKind, ensure_flow_compiled},
        error::blames_the_session,
        limit::BadConnections,
        rights,
        worker::{
            Registration, disabled, environment, lost_after, register_worker, set_worker_process,
            share_flow_input, track_worker_function,
        },
    },
    worker::{OptionProblem, Stop, WorkerOptions, clock},
};

/// A worker that may claim.
#[derive(Debug)]
pub(crate) struct Registered {
    pub(crate) worker_id: Uuid,
    pub(crate) queue_name: String,
    pub(crate) compile_status: CompileStatus,
    /// The time of the request by [`clock`]: it was the first heartbeat.
    pub(crate) at: u64,
}

/// The decision about a start.
enum Answer<T> {
    Accepted(T),
    /// Not before others have stopped.
    Draining(Draining),
}

/// Checks what can be checked without a database.
pub(crate) fn check(target: Target, options: &WorkerOptions) -> Result<(), StartupError> {
    plan(target, options).map(drop)
}

fn plan(target: Target, options: &WorkerOptions) -> Result<Plan, StartupError> {
    let plan = Plan::new(target)?;
    let problems = options.problems();
    if problems.is_empty() {
        Ok(plan)
    } else {
        Err(StartupError::InvalidOptions { problems })
    }
}

/// Registers a worker for what the target says; a wait for others ends when a stop is requested.
///
/// `sibling` is a worker of the same definition that was just registered over the same pool: what
/// that start has checked is not checked again.
pub(crate) async fn start(
    pool: &PgPool,
    target: Target,
    options: &WorkerOptions,
    sibling: Option<Uuid>,
    stop: &Stop,
) -> Result<Registered, StartupError> {
    let plan = plan(target, options)?;
    // Whether its attempts end in time is checked of each worker that asks for it.
    if let Some(sibling) = sibling.filter(|_| options.abandon_after.is_none())
        && let Some(registered) = join(pool, &plan, options, sibling).await?
    {
        return Ok(registered);
    }
    let mut wait = Wait::new(target.definition.slug, options.drain_timeout);
    let mut bad = BadConnections::of(pool);
    let mut is_permitted = false;
    loop {
        let mut connection = pool.acquire().await.map_err(StartupError::Connect)?;
        let answer = try_start(pool, &mut connection, &plan, options, &mut is_permitted).await;
        match answer {
            Ok(Answer::Accepted(registered)) => return Ok(registered),
            Ok(Answer::Draining(draining)) => {
                // The workers that are waited for may use the same pool.
                drop(connection);
                wait.pause(draining, stop).await?;
            }
            Err(error) if bad.is_to_be_replaced(&error) => connection.close_on_drop(),
            Err(error) => return Err(error),
        }
    }
}

async fn try_start(
    pool: &PgPool,
    connection: &mut PgConnection,
    plan: &Plan,
    options: &WorkerOptions,
    is_permitted: &mut bool,
) -> Result<Answer<Registered>, StartupError> {
    if !*is_permitted {
        if options.migrate {
            migrate::migrate(pool).await?;
        }
        permitted(connection, plan.target).await?;
        ready(pool, connection, options.release).await?;
        if let Some(after) = options.abandon_after {
            abandons_in_time(connection, after).await?;
        }
        *is_permitted = true;
    }
    register(connection, plan, options).await
}

/// Checks that the worker drops its attempts before others take it for dead.
async fn abandons_in_time(
    connection: &mut PgConnection,
    after: Duration,
) -> Result<(), StartupError> {
    let lost_after = lost_after(connection).await?;
    if after < lost_after {
        return Ok(());
    }
    Err(StartupError::InvalidOptions {
        problems: vec![OptionProblem::abandons_too_late(after, lost_after)],
    })
}

/// Registers a worker beside one whose start has compiled the definition. None when that no longer
/// holds, when something is refused, or when the connection is unusable: a separate start then
/// reports the fault.
async fn join(
    pool: &PgPool,
    plan: &Plan,
    options: &WorkerOptions,
    sibling: Uuid,
) -> Result<Option<Registered>, StartupError> {
    let mut connection = pool.acquire().await.map_err(StartupError::Connect)?;
    match join_over(&mut connection, plan, options, sibling).await {
        Ok(enrolled) => Ok(enrolled.map(|(worker_id, at)| Registered {
            worker_id,
            queue_name: plan.queue_name.clone(),
            compile_status: CompileStatus::Verified,
            at,
        })),
        Err(StartupError::Refused(_)) => Ok(None),
        Err(error) if blames_the_session(&error) => {
            connection.close_on_drop();
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

async fn join_over(
    connection: &mut PgConnection,
    plan: &Plan,
    options: &WorkerOptions,
    sibling: Uuid,
) -> Result<Option<(Uuid, u64)>, StartupError> {
    let mut transaction = connection.begin().await?;
    let enrolled = enrol(&mut transaction, plan, options).await?;
    // After registration, which locks the flow: whoever replaces a definition tells its workers to
    // stop before.
    if !is_serving(&mut *transaction, sibling).await? {
        return Ok(None);
    }
    transaction.commit().await?;
    Ok(Some(enrolled))
}

/// Checks that the role may do all that a worker does, also what it does only when something fails
/// or when it stops.
async fn permitted(connection: &mut PgConnection, target: Target) -> Result<(), StartupError> {
    let missing = rights::missing(connection, target.step.is_some()).await?;
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

/// Checks that the database's migrations are those of this release; a local database that is behind
/// is migrated.
async fn ready(
    pool: &PgPool,
    connection: &mut PgConnection,
    release: Release,
) -> Result<(), StartupError> {
    let Err(error) = migrate::check_installed_for(connection, release).await else {
        return Ok(());
    };
    if !is_behind(&error) || environment(&mut *connection).await? != "local" {
        return Err(error.into());
    }
    info!("the local database is behind, it is migrated");
    migrate::migrate(pool).await?;
    migrate::check_installed_for(connection, release).await?;
    Ok(())
}

fn is_behind(error: &NotReadyError) -> bool {
    match error {
        NotReadyError::DatabaseOlder { .. } => true,
        NotReadyError::Protocol { database, code } => database < code,
        _ => false,
    }
}

/// Compiles and registers in one transaction: when anything is refused, not even a definition that
/// was missing stays. While others have to stop first, only that they are asked to is kept.
async fn register(
    connection: &mut PgConnection,
    plan: &Plan,
    options: &WorkerOptions,
) -> Result<Answer<Registered>, StartupError> {
    let definition = plan.target.definition;
    let function_name = options.function_name.as_str();
    // The role's own default could be serializable, in which no definition is compared.
    let mut transaction = connection
        .begin_with("begin transaction isolation level read committed")
        .await?;
    let compilation = ensure_flow_compiled(
        &mut *transaction,
        definition.slug,
        &plan.shape,
        definition.queue_mode.as_str(),
        &plan.routes,
    )
    .await?;
    let differences = compilation.differences.clone();
    let answer = accept(definition.slug, compilation)?;
    let compile_status = match answer {
        Answer::Accepted(compile_status) => compile_status,
        Answer::Draining(draining) => {
            refuse_disabled(&mut transaction, function_name).await?;
            transaction.commit().await?;
            return Ok(Answer::Draining(draining));
        }
    };
    let (worker_id, at) = enrol(&mut transaction, plan, options).await?;
    transaction.commit().await?;
    if compile_status == CompileStatus::Recompiled {
        warn!(
            flow = definition.slug,
            differences = differences.join("; "),
            "the local database had another definition of the flow; it was replaced, and its runs are gone"
        );
    }
    Ok(Answer::Accepted(Registered {
        worker_id,
        queue_name: plan.queue_name.clone(),
        compile_status,
        at,
    }))
}

/// Registers the worker and its function, unless that is out of service; returns its id and the
/// moment just before.
async fn enrol(
    connection: &mut PgConnection,
    plan: &Plan,
    options: &WorkerOptions,
) -> Result<(Uuid, u64), StartupError> {
    let function_name = options.function_name.as_str();
    track_worker_function(&mut *connection, function_name, options.start_mode.as_str()).await?;
    // Tracking has locked the function's row: whoever fences it has done so before, or waits until
    // the worker is registered, and tells it to stop.
    refuse_disabled(connection, function_name).await?;
    let worker_id = Uuid::now_v7();
    let at = clock::now();
    if !plan.flow_input_steps.is_empty() {
        share_flow_input(&mut *connection).await?;
    }
    register_worker(
        &mut *connection,
        &Registration {
            worker_id,
            function_name,
            flow_slug: plan.target.definition.slug,
            step_slug: plan.target.step_slug(),
            queue_name: &plan.queue_name,
            flow_input_steps: &plan.flow_input_steps,
            build: options.build.as_deref(),
        },
    )
    .await?;
    let host = gethostname::gethostname();
    set_worker_process(
        &mut *connection,
        worker_id,
        &host.to_string_lossy(),
        std::process::id(),
    )
    .await?;
    Ok((worker_id, at))
}

async fn refuse_disabled(
    connection: &mut PgConnection,
    function_name: &str,
) -> Result<(), StartupError> {
    match disabled(connection, function_name).await? {
        None => Ok(()),
        Some(disabled) => Err(FunctionDisabled {
            function_name: function_name.to_owned(),
            since: disabled.since,
            reason: disabled.reason,
            is_fenced: disabled.is_fenced,
        }
        .into()),
    }
}

/// Reports options that differ, once for each change of them and not at every start.
fn report_options(flow: &str, compilation: &Compilation) {
    if compilation.options_followed {
        info!(flow, "the local database has taken the options of the code");
    }
    if compilation.options_differ.is_empty() {
        return;
    }
    let differences = compilation.options_differ.join("; ");
    if compilation.options_are_news {
        warn!(
            flow,
            differences,
            update = compilation.option_updates.join("; "),
            "options differ from those in the database, which apply; to change them there, run the update or `pgflow tune`"
        );
    } else {
        debug!(
            flow,
            differences, "options still differ from those in the database"
        );
    }
}

fn accept(flow: &str, compilation: Compilation) -> Result<Answer<CompileStatus>, StartupError> {
    report_options(flow, &compilation);
    match compilation.status {
        CompileStatus::Compiled | CompileStatus::Verified | CompileStatus::Recompiled => {
            Ok(Answer::Accepted(compilation.status))
        }
        CompileStatus::Draining => Ok(Answer::Draining(Draining {
            differences: compilation.differences,
            workers: compilation.workers,
        })),
        CompileStatus::Mismatch => {
            let mismatch = Mismatch {
                flow: flow.to_owned(),
                differences: compilation.differences,
            };
            Err(match compilation.mismatch_kind {
                Some(MismatchKind::Routing) => StartupError::RoutingMismatch(mismatch),
                Some(MismatchKind::Shape) | None => StartupError::ShapeMismatch(mismatch),
            })
        }
    }
}

#[cfg(test)]
mod tests;
