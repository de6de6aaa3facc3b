//! A run on a terminal, drawn again and again in the same place.

use std::{
    borrow::Cow,
    io::{self, Write as _},
};

use console::{StyledObject, Term, style, truncate_str};
use pgflow_runtime::{
    inspect::{RunDetails, RunSummary, StepDetails},
    printable::printable,
};

use super::{
    watch::progress,
    words::{note, took},
};
use crate::{failure::Failure, table, words::count};

const BAR: usize = 20;

/// The lines that were drawn last stand above the cursor.
pub(super) struct Screen {
    terminal: Term,
    drawn: usize,
}

impl Screen {
    pub(super) fn new() -> Self {
        Self {
            terminal: Term::stdout(),
            drawn: 0,
        }
    }

    /// False when the output is closed.
    pub(super) fn draw(&mut self, details: &RunDetails) -> Result<bool, Failure> {
        let (height, width) = self.terminal.size();
        let lines = lines(details, usize::from(height));
        let mut text = self.to_the_top();
        for line in &lines {
            // One that wraps would take more lines than are counted. The last column is left free:
            // some terminals wrap after it.
            let line = truncate_str(line, usize::from(width).saturating_sub(1), "\u{2026}");
            text.extend(["\u{1b}[2K", &line, "\n"]);
        }
        text.push_str("\u{1b}[J");
        self.drawn = lines.len();
        match self.write(&text) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
            written => Ok(written.map(|()| true)?),
        }
    }

    pub(super) fn clear(&mut self) -> io::Result<()> {
        let text = format!("{}\u{1b}[J", self.to_the_top());
        self.drawn = 0;
        self.write(&text)
    }

    fn to_the_top(&self) -> String {
        match self.drawn {
            0 => String::new(),
            drawn => format!("\u{1b}[{drawn}A\r"),
        }
    }

    fn write(&self, text: &str) -> io::Result<()> {
        let mut terminal = &self.terminal;
        terminal.write_all(text.as_bytes())?;
        terminal.flush()
    }
}

fn lines(details: &RunDetails, height: usize) -> Vec<String> {
    let run = &details.run;
    let mut lines = vec![format!(
        "run {} of {}: {}, {}",
        run.run_id,
        printable(&run.flow_slug),
        coloured(&run.status),
        table::duration(run.started_at, run.ended_at)
    )];
    let width = details.steps.iter().map(|step| step.step_slug.len()).max();
    let width = width.unwrap_or_default();
    // The first line, the one below the last, and the cursor's.
    let room = height.saturating_sub(3);
    let (steps, hidden) = fitting(&details.steps, room);
    lines.extend(steps.iter().map(|step| line(step, width, run)));
    if hidden > 0 {
        lines.push(format!("  and {}", count(hidden as u64, "more step")));
    }
    lines
}

/// The steps for which there is room, in their order: first those that have not ended. And how many
/// are left out.
fn fitting(steps: &[StepDetails], room: usize) -> (Vec<&StepDetails>, usize) {
    let mut chosen: Vec<&StepDetails> = steps.iter().collect();
    chosen.sort_by_key(|step| {
        (
            step.ended_at.is_some(),
            step.started_at.is_none(),
            step.step_index,
        )
    });
    chosen.truncate(room);
    chosen.sort_by_key(|step| step.step_index);
    let hidden = steps.len() - chosen.len();
    (chosen, hidden)
}

fn line(step: &StepDetails, width: usize, run: &RunSummary) -> String {
    let status = coloured(&step.status);
    // Escaped before the colours, which are control characters of our own.
    let slug = printable(&step.step_slug);
    let mut parts = vec![format!("  {slug:<width$}  {status:<9}")];
    if let Some(progress) = progress(step) {
        parts.push(format!("[{}] {progress}", bar(step)));
    }
    parts.extend(took(step, run));
    parts.push(printable(&table::short(&note(step, run), 200)).into_owned());
    parts.retain(|part| !part.is_empty());
    parts.join("  ")
}

fn coloured(status: &str) -> StyledObject<Cow<'_, str>> {
    let styled = style(printable(status));
    match status {
        "completed" => styled.green(),
        "failed" => styled.red(),
        "skipped" => styled.yellow(),
        _ => styled,
    }
}

/// Draws the share of a map's tasks that have ended.
fn bar(step: &StepDetails) -> String {
    let total = usize::try_from(step.initial_tasks.unwrap_or_default()).unwrap_or_default();
    let ended = step.tasks.completed + step.tasks.failed;
    let ended = usize::try_from(ended).unwrap_or_default();
    let filled = (ended * BAR).checked_div(total).unwrap_or(BAR).min(BAR);
    format!("{}{}", "#".repeat(filled), "-".repeat(BAR - filled))
}
