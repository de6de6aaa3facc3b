//! Functions and workers in words.

use pgflow_runtime::operations::{WorkerFunction, WorkerStatus};

use crate::{
    output::Text,
    table::{self, table},
};

/// `enabled`, `disabled` or `fenced`.
pub(super) fn of(function: &WorkerFunction) -> &'static str {
    if function.is_fenced() {
        "fenced"
    } else if function.enabled {
        "enabled"
    } else {
        "disabled"
    }
}

/// Describes the state that the end of its fence restores.
pub(super) fn recorded(function: &WorkerFunction) -> String {
    match function.recorded_enabled {
        None => String::new(),
        Some(true) => "enabled".to_owned(),
        Some(false) => format!(
            "disabled ({})",
            reason(function.recorded_disabled_reason.as_deref())
        ),
    }
}

/// Since when and why a function is disabled.
pub(super) fn disabled(function: &WorkerFunction) -> String {
    let since = function
        .disabled_at
        .map_or_else(String::new, |at| format!(" since {}", table::time(at)));
    format!(
        "disabled{since}: {}",
        reason(function.disabled_reason.as_deref())
    )
}

fn reason(reason: Option<&str>) -> &str {
    reason.unwrap_or("no reason was given")
}

/// A line for each worker, which fits into 80 columns unless names or reasons are long: of its id
/// the last digits, by which logs and `--json` can be searched, and its queue only where one of
/// them has another than its function's name.
pub(super) fn workers<'a>(workers: impl IntoIterator<Item = &'a WorkerStatus>) -> Text {
    let workers: Vec<&WorkerStatus> = workers.into_iter().collect();
    let with_queue = workers
        .iter()
        .any(|worker| worker.queue_name != worker.function_name);
    let with_build = workers.iter().any(|worker| worker.build.is_some());
    let with_told = workers.iter().any(|worker| !told(worker).is_empty());
    let mut header = vec!["WORKER", "FUNCTION"];
    header.extend(with_queue.then_some("QUEUE"));
    header.extend(["STATE", "TASKS", "STARTED", "HEARTBEAT"]);
    header.extend(with_build.then_some("BUILD"));
    header.extend(with_told.then_some("TOLD TO STOP"));
    let mut rows = table(&header);
    for worker in workers {
        let mut row = vec![last_digits(worker), worker.function_name.clone()];
        row.extend(with_queue.then(|| worker.queue_name.clone()));
        row.extend([
            worker.state.as_str().to_owned(),
            worker.started_tasks.to_string(),
            table::ago(worker.started_at),
            table::ago(worker.last_heartbeat_at),
        ]);
        row.extend(
            with_build.then(|| table::short(worker.build.as_deref().unwrap_or_default(), 40)),
        );
        row.extend(with_told.then(|| table::short(&told(worker), 60)));
        rows.add_row(row);
    }
    table::text(&rows)
}

/// The part of its id after the last hyphen: all of it is random.
fn last_digits(worker: &WorkerStatus) -> String {
    let id = worker.worker_id.to_string();
    id.rsplit('-').next().unwrap_or_default().to_owned()
}

/// Returns the reason of its stop request.
fn told(worker: &WorkerStatus) -> String {
    match (&worker.deprecated_at, &worker.deprecated_reason) {
        (None, _) => String::new(),
        (Some(_), None) => "yes".to_owned(),
        (Some(_), Some(reason)) => reason.clone(),
    }
}
