//! Enabling and disabling.

use std::fmt::Write as _;

use clap::Args;
use pgflow_runtime::operations::{self, FunctionChange, FunctionStatus};
use sqlx::PgPool;

use super::{state, target::Target};
use crate::{
    arguments::{Connection, Output},
    database,
    exit::Exit,
    failure::Failure,
    output::{self, Text},
    words::count,
};

#[derive(Debug, Args)]
pub(crate) struct Enable {
    #[command(flatten)]
    target: Target,
    /// First archive, from the queues that they serve, the messages that no task has; `pgflow
    /// queues --inspect` shows them.
    #[arg(long)]
    archive_unsupported: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Disable {
    #[command(flatten)]
    target: Target,
    /// The reason, shown on each attempt to start one of their workers.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

impl Enable {
    pub(super) async fn run(
        self,
        connection: &Connection,
        output: &Output,
    ) -> Result<Exit, Failure> {
        let pool = database::ready_pool(connection).await?;
        let names = self.target.resolve(&pool).await?;
        if self.archive_unsupported {
            return enable_archiving(&pool, &names, output).await;
        }
        let changes = operations::enable(&pool, &names).await?;
        if output.json {
            output::print_json(&changes)?;
        } else {
            output::print(changes.iter().map(enabled).collect::<Text>())?;
        }
        Ok(Exit::Done)
    }
}

impl Disable {
    pub(super) async fn run(
        self,
        connection: &Connection,
        output: &Output,
    ) -> Result<Exit, Failure> {
        let pool = database::ready_pool(connection).await?;
        let names = self.target.resolve(&pool).await?;
        let changes = operations::disable(&pool, &names, self.reason.as_deref()).await?;
        if output.json {
            output::print_json(&changes)?;
            return Ok(Exit::Done);
        }
        let functions = operations::list(&pool, Some(&names), false).await?;
        let mut text: Text = changes.iter().map(disabled).collect();
        if let Some(live) = live(&functions, &self.target)? {
            text.line(live);
        }
        output::print(text)?;
        Ok(Exit::Done)
    }
}

async fn enable_archiving(
    pool: &PgPool,
    names: &[String],
    output: &Output,
) -> Result<Exit, Failure> {
    let cleared = operations::enable_archiving(pool, names).await?;
    if let Some(first) = cleared.kept.first() {
        return Err(Failure::new(
            Exit::Failed,
            format!(
                "message {} of queue \"{}\" can't be archived, as a task has it ({}){}; expected messages that no \
                 task has; nothing was changed; deploy the build that this work needs, then enable the function \
                 without --archive-unsupported",
                first.message_id,
                first.queue_name,
                first.reason,
                match cleared.kept.len() {
                    1 => String::new(),
                    more => format!(", nor can {} others", more - 1),
                }
            ),
        ));
    }
    if output.json {
        output::print_json(&cleared)?;
        return Ok(Exit::Done);
    }
    let archived = cleared.archived.iter().map(|message| {
        format!(
            "archived message {} of queue {}: {}",
            message.message_id, message.queue_name, message.reason
        )
    });
    let mut text: Text = archived.collect();
    if cleared.archived.is_empty() {
        text.line("there was no message to archive");
    }
    text.append(cleared.functions.iter().map(enabled).collect());
    output::print(text)?;
    Ok(Exit::Done)
}

fn enabled(change: &FunctionChange) -> String {
    let name = &change.after.function_name;
    if change.fence_ended() {
        return fence_ended(change);
    }
    if change.before.enabled {
        return format!("{name} was enabled already");
    }
    format!(
        "{name} is enabled; it was {}",
        state::disabled(&change.before)
    )
}

/// The end of a fence, and what it restored.
pub(super) fn fence_ended(change: &FunctionChange) -> String {
    let name = &change.after.function_name;
    if change.after.enabled {
        return format!("{name} is not fenced any more: it is enabled again");
    }
    format!(
        "{name} is not fenced any more, and still {}; once that is dealt with: pgflow workers enable {name}",
        state::disabled(&change.after)
    )
}

fn disabled(change: &FunctionChange) -> String {
    let name = &change.after.function_name;
    if change.after.is_fenced() {
        return format!(
            "{name} is fenced; the end of the fence restores: {}",
            state::recorded(&change.after)
        );
    }
    if change.before.enabled {
        return format!("{name} is disabled: none of its workers starts any more");
    }
    format!("{name} was {} already", state::disabled(&change.after))
}

/// The workers that continue.
fn live(functions: &[FunctionStatus], target: &Target) -> Result<Option<String>, Failure> {
    let mut running = 0;
    for function in functions {
        let workers = function.workers.iter();
        running += workers.filter(|worker| worker.state.is_live()).count() as u64;
    }
    if running == 0 {
        return Ok(None);
    }
    let mut text = count(running, "live worker");
    write!(
        text,
        " {} on; to stop them: pgflow workers drain {}",
        if running == 1 { "goes" } else { "go" },
        target.written()
    )?;
    Ok(Some(text))
}
