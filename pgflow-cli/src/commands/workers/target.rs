//! The functions that a command refers to.

use clap::Args;
use pgflow_runtime::operations;
use sqlx::PgPool;

use crate::{exit::Exit, failure::Failure, unknown};

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(super) struct Target {
    /// The functions; `pgflow workers list` shows their names.
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// All functions of this flow: those with a live worker for it, those whose newest worker
    /// served it, and those that served one of its queues last.
    #[arg(long, value_name = "SLUG")]
    flow: Option<String>,
}

impl Target {
    /// The functions' names, each once, in order.
    pub(super) async fn resolve(&self, pool: &PgPool) -> Result<Vec<String>, Failure> {
        if let Some(flow) = &self.flow {
            return of_flow(pool, flow).await?.ok_or_else(|| {
                Failure::new(
                    Exit::NotFound,
                    format!(
                        "no worker has served flow \"{flow}\" yet, so it has no worker functions; \
                         expected a flow that `pgflow workers list` shows"
                    ),
                )
            });
        }
        let mut names = self.names.clone();
        names.sort();
        names.dedup();
        assert_known(pool, &names).await?;
        Ok(names)
    }

    /// Returns the arguments as they were written, for the next command.
    pub(super) fn written(&self) -> String {
        if let Some(flow) = &self.flow {
            return format!("--flow {}", quoted(flow));
        }
        let names: Vec<String> = self.names.iter().map(|name| quoted(name)).collect();
        names.join(" ")
    }
}

/// The functions of a flow; none for a flow that never had a worker.
pub(super) async fn of_flow(pool: &PgPool, flow: &str) -> Result<Option<Vec<String>>, Failure> {
    let names = operations::functions_of_flow(pool, flow).await?;
    if !names.is_empty() {
        return Ok(Some(names));
    }
    unknown::assert_flow(pool, flow).await?;
    Ok(None)
}

/// The database would refuse too; here it is said what it has.
pub(super) async fn assert_known(pool: &PgPool, names: &[String]) -> Result<(), Failure> {
    let functions = operations::functions(pool).await?;
    let known: Vec<String> = functions
        .into_iter()
        .map(|function| function.function_name)
        .collect();
    match names.iter().find(|name| !known.contains(name)) {
        Some(name) => Err(unknown::function(name, &known)),
        None => Ok(()),
    }
}

/// For a shell.
pub(super) fn quoted(name: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    if !name.is_empty() && !name.starts_with('-') && name.bytes().all(is_plain) {
        return name.to_owned();
    }
    format!("'{}'", name.replace('\'', "'\\''"))
}
