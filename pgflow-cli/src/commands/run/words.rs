//! Steps in few words.

use pgflow_runtime::inspect::{RunSummary, StepDetails, StepExplanation, StepReason};

use crate::{table, words::counts};

/// Returns the facts about a step that the counts of its tasks don't show.
pub(super) fn note(step: &StepDetails, run: &RunSummary) -> String {
    let unfinished = counts([
        (step.tasks.skipped, "skipped"),
        (step.tasks.cancelled, "cancelled"),
    ]);
    let parts = [
        step.skip_reason
            .as_ref()
            .map(|reason| reason.replace('_', " ")),
        left_by(step, run),
        without(step),
        (!unfinished.is_empty()).then_some(unfinished),
        step.explanation.as_ref().and_then(why),
        step.error_message.clone(),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    parts.join("; ")
}

/// The number of elements that a map does without, as far as it is known yet.
fn without(step: &StepDetails) -> Option<String> {
    let failed = step.failed_elements();
    let total = step.initial_tasks.filter(|_| failed > 0)?;
    Some(format!("{failed} of {total} elements failed: null"))
}

/// `single` or `map`, or the end of the run that it waits for.
pub(super) fn kind(step: &StepDetails) -> String {
    match &step.runs_on {
        Some(end) => format!("on {end}"),
        None => step.step_type.clone(),
    }
}

/// Describes a step that had not ended when its run did: its status does not change.
fn left_by(step: &StepDetails, run: &RunSummary) -> Option<String> {
    run.ended_at.filter(|_| step.runs_on.is_none())?;
    match step.status.as_str() {
        "created" => Some("never started".to_owned()),
        "started" => Some(format!("unfinished when the run {}", run.status)),
        _ => None,
    }
}

/// Returns its duration, so far if it is still running; none before it starts. No step except an
/// end step continues after the end of its run.
pub(super) fn took(step: &StepDetails, run: &RunSummary) -> Option<String> {
    Some(table::duration(
        step.started_at?,
        step.ended_at
            .or(run.ended_at.filter(|_| step.runs_on.is_none())),
    ))
}

fn postponed(explanation: &StepExplanation) -> String {
    let next = explanation.visible_at.map(table::time).unwrap_or_default();
    match &explanation.postponed {
        Some(postponed) => format!(
            "postponed {}, since {}, next at {next}: {}",
            times(postponed.times),
            table::time(postponed.since),
            postponed.cause
        ),
        None => format!("postponed, next at {next}"),
    }
}

fn times(count: i32) -> String {
    match count {
        1 => "once".to_owned(),
        count => format!("{count} times"),
    }
}

/// Returns the reason why it does not run; none when it does. `pgflow why` shows more.
fn why(explanation: &StepExplanation) -> Option<String> {
    let visible_at = || explanation.visible_at.map(table::time).unwrap_or_default();
    Some(match explanation.reason {
        StepReason::Running
        | StepReason::Completed
        | StepReason::Skipped
        | StepReason::Failed
        | StepReason::RunEnded => return None,
        StepReason::WaitingForDependencies => {
            let slugs: Vec<&str> = explanation
                .waiting_for
                .iter()
                .map(|dependency| &*dependency.step_slug)
                .collect();
            format!("waits for {}", slugs.join(", "))
        }
        StepReason::WaitingForRunEnd => "waits for the end of the run".to_owned(),
        StepReason::NotAdvanced => "should have gone on: see pgflow why".to_owned(),
        StepReason::WorkerLost => "its worker is lost".to_owned(),
        StepReason::Stalled => "past its time, recovery takes it".to_owned(),
        StepReason::MessageMissing => "its message is gone from the queue".to_owned(),
        StepReason::StartDelay => format!("delayed until {}", visible_at()),
        StepReason::RetryDelay => format!("next attempt at {}", visible_at()),
        StepReason::Postponed => postponed(explanation),
        StepReason::WaitingToRunAlone => {
            "its attempts are used up by its workers' ends; it gets one more, alone".to_owned()
        }
        StepReason::NoWorker => match &explanation.disabled_reason {
            None => "no live worker".to_owned(),
            Some(reason) => format!("no live worker, its function is disabled: {reason}"),
        },
        StepReason::WaitingForWorker => "waits for a free worker".to_owned(),
        _ => table::times_in(&explanation.message),
    })
}
