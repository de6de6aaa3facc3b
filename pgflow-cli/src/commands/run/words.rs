//! Steps in few words.

use pgflow_runtime::inspect::{StepDetails, StepExplanation, StepReason};

use crate::table;

/// What the counts of its tasks don't say.
pub(super) fn note(step: &StepDetails, run_has_ended: bool) -> String {
    let given_up = step.tasks.skipped + step.tasks.cancelled;
    let parts = [
        step.skip_reason
            .as_ref()
            .map(|reason| reason.replace('_', " ")),
        (given_up > 0).then(|| format!("{given_up} given up")),
        (step.status == "created" && run_has_ended).then(|| "never started".to_owned()),
        step.explanation.as_ref().and_then(why),
        step.error_message.clone(),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    parts.join("; ")
}

/// Why it does not run; none when it does. `pgflow why` says more.
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
        StepReason::NotAdvanced => "should have gone on: see pgflow why".to_owned(),
        StepReason::WorkerLost => "its worker is lost".to_owned(),
        StepReason::Stalled => "past its time, recovery takes it".to_owned(),
        StepReason::MessageMissing => "its message is gone from the queue".to_owned(),
        StepReason::StartDelay => format!("delayed until {}", visible_at()),
        StepReason::RetryDelay => format!("next attempt at {}", visible_at()),
        StepReason::NoWorker => match &explanation.disabled_reason {
            None => "no live worker".to_owned(),
            Some(reason) => format!("no live worker, its function is disabled: {reason}"),
        },
        StepReason::WaitingForWorker => "waits for a free worker".to_owned(),
        _ => table::times_in(&explanation.message),
    })
}
