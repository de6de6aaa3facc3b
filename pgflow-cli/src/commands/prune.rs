use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::{Args, value_parser};
use indicatif::{ProgressBar, ProgressFinish};
use pgflow_runtime::{
    maintenance::{self, Prunable},
    sql::CallError,
};
use serde_json::json;
use sqlx::{Connection as _, PgConnection};

use crate::{
    age,
    arguments::{Connection, Output},
    confirm, database,
    exit::Exit,
    failure::Failure,
    output,
    patience::Patience,
    stop::StopSignal,
    words::count,
};

#[derive(Debug, Args)]
pub(crate) struct Prune {
    /// The least age of an ended run: 30d, 12h, 90m (minutes), 2w, 1d12h; whole seconds, a day is
    /// 24 hours.
    #[arg(long, value_name = "AGE", value_parser = age::parse)]
    older_than: Duration,
    /// At most so many runs in one transaction.
    #[arg(long, value_name = "RUNS", default_value_t = 1000, value_parser = value_parser!(u32).range(1..=100_000))]
    batch: u32,
    /// Only count the runs that would go, and their tasks.
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
    /// Remove without asking; required where there is no terminal.
    #[arg(long)]
    yes: bool,
}

/// The removed data.
struct Removed {
    runs: u64,
    /// More may be left: ctrl-c, or SIGTERM.
    interrupted: bool,
}

impl Prune {
    pub(crate) async fn run(
        self,
        connection: &Connection,
        output: &Output,
    ) -> Result<Exit, Failure> {
        if !self.dry_run && !self.yes {
            confirm::require_terminal()?;
        }
        let mut database = database::ready(connection).await?;
        // What becomes old enough from here on stays: a database in use would never be done, and
        // nobody was asked about it.
        let now = Instant::now();
        if self.dry_run {
            let found = maintenance::prunable(&mut database, self.older_than).await?;
            self.print_found(found, output)?;
            return Ok(Exit::Done);
        }
        if !self.yes {
            let found = maintenance::prunable(&mut database, self.older_than).await?;
            if found.runs > 0 && !confirm::is_yes(&self.question(found))? {
                return Err(confirm::declined());
            }
        }
        let removed = self.remove(&mut database, now, output).await?;
        self.print_removed(&removed, output)?;
        Ok(Exit::Done)
    }

    /// Removes batch after batch, until nothing is left or a signal arrives.
    async fn remove(
        &self,
        database: &mut PgConnection,
        now: Instant,
        output: &Output,
    ) -> Result<Removed, Failure> {
        let mut stop = StopSignal::listen()?;
        let progress = ProgressBar::new_spinner().with_finish(ProgressFinish::AndClear);
        progress.enable_steady_tick(Duration::from_millis(100));
        let mut removed = Removed {
            runs: 0,
            interrupted: false,
        };
        // Where no spinner can be drawn, as in the log of a scheduler: a line now and then.
        let mut patience = Patience::new(output.json || !progress.is_hidden());
        while !removed.interrupted {
            let older_than = self.older_than.saturating_add(now.elapsed());
            let so_far = format!("{} removed", count(removed.runs, "run"));
            let batch = remove_batch(database, older_than, self.batch);
            let batch = patience.during(&so_far, batch);
            tokio::pin!(batch);
            let runs = tokio::select! {
                runs = &mut batch => runs,
                () = stop.received() => {
                    removed.interrupted = true;
                    progress.suspend(|| output::say("stopping after this batch; ctrl-c again gives it up"));
                    tokio::select! {
                        runs = &mut batch => runs,
                        () = stop.received() => return Err(given_up(removed.runs)),
                    }
                }
            };
            let runs = runs.with_context(|| {
                format!(
                    "a batch failed after {} had been removed",
                    count(removed.runs, "run")
                )
            })?;
            if runs == 0 {
                removed.interrupted = false;
                break;
            }
            removed.runs += runs;
            progress.set_message(format!("{} removed", count(removed.runs, "run")));
        }
        Ok(removed)
    }

    fn question(&self, found: Prunable) -> String {
        format!("Remove {} that {}?", runs(found), self.ended())
    }

    fn ended(&self) -> String {
        format!("ended more than {} ago", age::words(self.older_than))
    }

    fn print_found(&self, found: Prunable, output: &Output) -> Result<(), Failure> {
        if output.json {
            return output::print_json(&found);
        }
        let tasks = count(found.tasks.unsigned_abs(), "task");
        output::print(format!(
            "{} with {tasks} {}; nothing was removed",
            runs(found),
            self.ended()
        ))
    }

    fn print_removed(&self, removed: &Removed, output: &Output) -> Result<(), Failure> {
        if output.json {
            return output::print_json(&json!({
                "removed_runs": removed.runs,
                "interrupted": removed.interrupted,
            }));
        }
        let rest = if removed.interrupted {
            "; interrupted, so more may be left"
        } else {
            ""
        };
        output::print(format!(
            "removed {} that {}{rest}",
            count(removed.runs, "run"),
            self.ended()
        ))
    }
}

/// Cut off before its commit, by the end of the process too, it has no effect.
async fn remove_batch(
    database: &mut PgConnection,
    older_than: Duration,
    max_runs: u32,
) -> Result<u64, CallError> {
    let mut transaction = database.begin().await?;
    let runs = maintenance::prune(&mut *transaction, older_than, max_runs).await?;
    transaction.commit().await?;
    Ok(runs)
}

fn given_up(removed: u64) -> Failure {
    Failure::new(
        Exit::Failed,
        format!(
            "given up in the midst of a batch; {} had been removed before it",
            count(removed, "run")
        ),
    )
}

fn runs(found: Prunable) -> String {
    count(found.runs.unsigned_abs(), "run")
}
