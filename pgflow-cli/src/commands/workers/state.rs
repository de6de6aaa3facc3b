//! Functions and workers in words.

use pgflow_runtime::operations::{WorkerFunction, WorkerStatus};

use crate::table::{self, table};

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

/// What the end of its fence restores.
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

/// A line for each worker.
pub(super) fn workers<'a>(workers: impl IntoIterator<Item = &'a WorkerStatus>) -> String {
    let mut rows = table(&[
        "WORKER",
        "FUNCTION",
        "FLOW",
        "STEP",
        "QUEUE",
        "STATE",
        "TASKS",
        "STARTED",
        "HEARTBEAT",
        "NOTE",
    ]);
    for worker in workers {
        rows.add_row([
            worker.worker_id.to_string(),
            worker.function_name.clone(),
            worker.flow_slug.clone(),
            worker
                .step_slug
                .clone()
                .unwrap_or_else(|| "(all)".to_owned()),
            worker.queue_name.clone(),
            worker.state.as_str().to_owned(),
            worker.started_tasks.to_string(),
            table::time(worker.started_at),
            table::ago(worker.last_heartbeat_at),
            table::short(&note(worker), 60),
        ]);
    }
    table::text(&rows)
}

fn note(worker: &WorkerStatus) -> String {
    match (&worker.deprecated_at, &worker.deprecated_reason) {
        (None, _) => String::new(),
        (Some(_), None) => "told to stop".to_owned(),
        (Some(_), Some(reason)) => format!("told to stop: {reason}"),
    }
}
