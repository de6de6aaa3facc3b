//! Follows a run until it ends.

use std::{io::IsTerminal as _, time::Duration};

use anyhow::Context as _;
use chrono::Utc;
use pgflow_runtime::{
    inspect::{self, RunDetails, RunSummary, StepDetails},
    sql::CallError,
};
use sqlx::PgConnection;
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::{describe, exit, not_found, screen::Screen, words::note};
use crate::{
    exit::Exit,
    failure::Failure,
    output::{self, Text},
    stop::StopSignal,
    table,
};

/// The least ratio of the pause to the duration of a poll: counting the tasks of a large map takes
/// the database a while.
const LOOKS_COST: u32 = 4;

/// The way in which changes are shown.
enum View {
    /// An object for each, in one line.
    Json { last: Option<String> },
    /// A line for each.
    Lines { last: Vec<(String, String)> },
    /// In place.
    Screen(Screen),
}

pub(super) async fn watch(
    database: &mut PgConnection,
    run_id: Uuid,
    interval: Duration,
    json: bool,
) -> Result<Exit, Failure> {
    let mut stop = StopSignal::listen()?;
    let mut view = View::new(json);
    let mut pause = Duration::ZERO;
    let mut is_known = false;
    loop {
        let (read, took) = tokio::select! {
            read = read(database, run_id, pause) => read?,
            () = stop.received() => return Ok(Exit::Interrupted),
        };
        let Some(details) = read else {
            return Err(if is_known {
                gone(run_id)
            } else {
                not_found(run_id)
            });
        };
        is_known = true;
        pause = interval.max(took * LOOKS_COST);
        // Nobody reads any more: `| head`.
        if !view.show(&details)? {
            return Ok(Exit::Interrupted);
        }
        if details.run.ended_at.is_some() {
            view.end(&details)?;
            return Ok(exit(&details));
        }
    }
}

async fn read(
    database: &mut PgConnection,
    run_id: Uuid,
    pause: Duration,
) -> Result<(Option<RunDetails>, Duration), CallError> {
    sleep(pause).await;
    let start = Instant::now();
    let details = inspect::run(database, run_id).await?;
    Ok((details, start.elapsed()))
}

fn gone(run_id: Uuid) -> Failure {
    Failure::new(
        Exit::NotFound,
        format!(
            "run {run_id} was removed while it was watched; expected it to stay until it has ended"
        ),
    )
}

impl View {
    fn new(json: bool) -> Self {
        if json {
            Self::Json { last: None }
        } else if std::io::stdout().is_terminal()
            && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
        {
            Self::Screen(Screen::new())
        } else {
            Self::Lines { last: Vec::new() }
        }
    }

    /// False when the output is closed.
    fn show(&mut self, details: &RunDetails) -> Result<bool, Failure> {
        match self {
            Self::Json { last } => {
                let now = serde_json::to_string(details)?;
                if last.as_ref() == Some(&now) {
                    return Ok(true);
                }
                let is_read = output::print_for_programs(&now)?;
                *last = Some(now);
                Ok(is_read)
            }
            Self::Lines { last } => {
                let now = lines(details);
                let time = table::time(Utc::now());
                let width = now.iter().map(|(name, _)| name.chars().count()).max();
                let width = width.unwrap_or_default();
                for line in now.iter().filter(|line| !last.contains(line)) {
                    let (name, state) = line;
                    if !output::print_if_read(format!("{time}  {name:<width$}  {state}"))? {
                        return Ok(false);
                    }
                }
                *last = now;
                Ok(true)
            }
            Self::Screen(screen) => screen.draw(details),
        }
    }

    /// After the end of the run.
    fn end(&mut self, details: &RunDetails) -> Result<(), Failure> {
        match self {
            Self::Json { .. } => Ok(()),
            Self::Lines { .. } => {
                let mut text = Text::from("");
                text.append(describe(details));
                output::print(text)
            }
            Self::Screen(screen) => {
                screen.clear().context("the terminal can't be written to")?;
                output::print(describe(details))
            }
        }
    }
}

/// Returns the text for each step, and for the run.
fn lines(details: &RunDetails) -> Vec<(String, String)> {
    let run = match &details.run.error_message {
        Some(error) => format!("{}: {}", details.run.status, table::short(error, 200)),
        None => details.run.status.clone(),
    };
    let mut lines: Vec<(String, String)> = details
        .steps
        .iter()
        .map(|step| (step.step_slug.clone(), state(step, &details.run)))
        .collect();
    // No step has a slug like this.
    lines.push(("(run)".to_owned(), run));
    lines
}

/// `started, 1/3, 1 running; waits for a free worker`.
fn state(step: &StepDetails, run: &RunSummary) -> String {
    let mut text = step.status.clone();
    if let Some(progress) = progress(step) {
        text.push_str(", ");
        text.push_str(&progress);
    }
    let note = note(step, run);
    if !note.is_empty() {
        text.push_str("; ");
        text.push_str(&table::short(&note, 200));
    }
    text
}

/// `1/3, 1 running`, of a map whose size is known.
pub(super) fn progress(step: &StepDetails) -> Option<String> {
    let total = step.initial_tasks.filter(|_| step.step_type == "map")?;
    let mut parts = vec![format!("{}/{total}", step.tasks.completed)];
    // The note shows the elements that a map does without.
    let failed = match step.failed_elements() {
        0 => step.tasks.failed,
        _ => 0,
    };
    for (count, what) in [(step.tasks.started, "running"), (failed, "failed")] {
        if count > 0 {
            parts.push(format!("{count} {what}"));
        }
    }
    Some(parts.join(", "))
}
