use std::{collections::BTreeSet, io::IsTerminal as _};

use anyhow::Context as _;
use clap::Args;
use pgflow_runtime::{inspect, maintenance, migrate};
use serde_json::json;
use sqlx::PgPool;

use crate::{
    arguments::{Connection, Output},
    confirm, database,
    exit::Exit,
    failure::Failure,
    output::{self, Text},
    words::count,
};

#[derive(Debug, Args)]
pub(crate) struct Init {
    /// Mark the database as a developer's own: a changed flow then replaces the stored one and its
    /// runs, instead of being refused.
    #[arg(long)]
    local: bool,
    /// Mark it without asking, though it has flows already.
    #[arg(long, requires = "local")]
    yes: bool,
}

impl Init {
    pub(crate) async fn run(
        self,
        connection: &Connection,
        output: &Output,
    ) -> Result<Exit, Failure> {
        let pool = database::pool(connection).await?;
        let report = migrate::migrate(&pool).await?;
        if self.local && environment(&pool).await? != "local" {
            let routes = inspect::coverage(&pool, None).await?;
            let flows: BTreeSet<&str> = routes.iter().map(|route| &*route.flow_slug).collect();
            if !flows.is_empty() && !self.yes {
                confirm_local(flows.len())?;
            }
            maintenance::mark_local(&pool).await?;
        }
        let environment = environment(&pool).await?;
        if output.json {
            output::print_json(&json!({ "migration": report, "environment": environment }))?;
        } else {
            let report = report.to_string();
            let mut text: Text = report.lines().collect();
            text.line(format!("environment: {environment}"));
            output::print(text)?;
        }
        Ok(Exit::Done)
    }
}

async fn environment(pool: &PgPool) -> Result<String, Failure> {
    let installation = migrate::status(pool).await?.installation;
    let installation = installation.context("the database was migrated, and says nothing of it")?;
    Ok(installation.environment)
}

/// A mistaken URL must not let the next worker delete data that others rely on.
fn confirm_local(flows: usize) -> Result<(), Failure> {
    let has = format!("this database has {}", count(flows as u64, "flow"));
    if !(std::io::stdin().is_terminal() && std::io::stderr().is_terminal()) {
        return Err(Failure::usage(format!(
            "{has}, and a local database deletes a flow with its runs when its code changes; expected a terminal, or --yes; it was not marked"
        )));
    }
    let question = format!(
        "{has}. A local database deletes a flow with its runs when its code changes. Mark it as local?"
    );
    if confirm::is_yes(&question)? {
        return Ok(());
    }
    Err(Failure::usage("not confirmed; it was not marked"))
}
