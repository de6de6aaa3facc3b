//! Turns successive snapshots of one run into events that were not yet emitted.

use std::{iter::zip, marker::PhantomData};

use chrono::{DateTime, Utc};

use super::{event::RunEvent, moments::moments};
use crate::{
    client::{ClientError, RunSnapshot, RunStatus, StepSnapshot, StepStatus},
    flow::{Flow, StepId},
};

/// The emitted state of a run. It only grows, whatever is read: a snapshot may be older than the
/// previous one, for example when two servers with different delays are read alternately.
#[derive(Debug)]
pub(super) struct History<F> {
    /// The run's start, once it was emitted.
    started_at: Option<DateTime<Utc>>,
    /// By the steps' indexes.
    steps: Vec<Told>,
    is_ended: bool,
    flow: PhantomData<fn() -> F>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Told {
    phase: Phase,
    /// Tasks that have completed or failed.
    ended: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    #[default]
    Waiting,
    Started,
    Ended,
}

type States<'a> = Vec<Option<&'a StepSnapshot>>;

impl<F: Flow> History<F> {
    pub(super) fn new() -> Self {
        Self {
            started_at: None,
            steps: vec![Told::default(); F::Step::ALL.len()],
            is_ended: false,
            flow: PhantomData,
        }
    }

    /// The end of the run was emitted: nothing follows.
    pub(super) fn is_ended(&self) -> bool {
        self.is_ended
    }

    /// Returns the new events in the order in which they happened: every cause comes before its
    /// effect, and the end of the run last.
    ///
    /// # Errors
    ///
    /// The id belongs to another run by now, or the run has a step that the flow does not have
    /// here. Then nothing is emitted.
    pub(super) fn tell(
        &mut self,
        seen: &RunSnapshot<F>,
    ) -> Result<Vec<RunEvent<F::Step>>, ClientError> {
        let states = by_index(seen)?;
        let at = seen.started_at();
        let mut events = Vec::new();
        match self.started_at {
            None => events.push(RunEvent::RunStarted { at }),
            Some(told) if told == at => {}
            // The run was deleted, and another one was started with its id.
            Some(_) => {
                let run_id = seen.run_id();
                return Err(ClientError::NotFound { run_id });
            }
        }
        self.started_at = Some(at);
        if self.is_ended {
            return Ok(events);
        }
        self.tell_steps(&states, &mut events);
        if let Some(end) = end_of_run(seen, &states) {
            self.is_ended = true;
            events.push(end);
        }
        Ok(events)
    }

    fn tell_steps(&mut self, states: &States<'_>, events: &mut Vec<RunEvent<F::Step>>) {
        let moments = moments::<F>(states);
        let mut changes = Vec::new();
        let mut progress = Vec::new();
        for (index, (&step, state)) in zip(F::Step::ALL, states).enumerate() {
            let Some(state) = state else { continue };
            let told = &mut self.steps[index];
            if let Some(moment) = moments[index].started
                && told.phase < Phase::Started
            {
                told.phase = Phase::Started;
                changes.push((moment, index, start(step, state, moment)));
            }
            if let Some(moment) = moments[index].ended
                && told.phase < Phase::Ended
            {
                told.phase = Phase::Ended;
                changes.push((moment, index, end(step, state, moment)));
            }
            if let Some(tasks) = state.tasks()
                && told.phase < Phase::Ended
                && tasks.completed + tasks.failed > told.ended
            {
                told.ended = tasks.completed + tasks.failed;
                progress.push(RunEvent::StepProgressed { step, tasks });
            }
        }
        // Of one moment in the order of the definition, and the start of a step before its end: the
        // sort keeps that.
        changes.sort_by_key(|&(moment, index, _)| (moment, index));
        events.extend(changes.into_iter().map(|(_, _, event)| event));
        // That of steps which have not ended.
        events.extend(progress);
    }
}

/// The states of the steps of the run by index; none where the database's definition of the flow
/// has no such step. End steps have none either: the events end with the run, before end steps
/// start.
fn by_index<F: Flow>(seen: &RunSnapshot<F>) -> Result<States<'_>, ClientError> {
    let mut states = vec![None; F::Step::ALL.len()];
    for state in seen.steps() {
        let slug = state.step_slug.as_str();
        let index = F::Step::ALL.iter().position(|step| step.slug() == slug);
        let index = index.ok_or_else(|| ClientError::UnknownStep {
            run_id: seen.run_id(),
            flow: F::DEFINITION.slug,
            step: slug.to_owned(),
        })?;
        let step = F::DEFINITION.steps.get(index);
        if step.is_none_or(|step| step.runs_on.is_none()) {
            states[index] = Some(state);
        }
    }
    Ok(states)
}

fn tasks(state: &StepSnapshot) -> u64 {
    // Known of each step that has started, and not below 0: constraints of the table show it.
    state
        .initial_tasks
        .and_then(|tasks| tasks.try_into().ok())
        .unwrap_or_default()
}

fn start<S>(step: S, state: &StepSnapshot, moment: DateTime<Utc>) -> RunEvent<S> {
    RunEvent::StepStarted {
        step,
        tasks: tasks(state),
        at: state.started_at.unwrap_or(moment),
    }
}

fn end<S>(step: S, state: &StepSnapshot, moment: DateTime<Utc>) -> RunEvent<S> {
    let message = state.error_message.clone();
    match state.skip_reason {
        Some(reason) => RunEvent::StepSkipped {
            step,
            reason,
            message,
            at: state.skipped_at.unwrap_or(moment),
        },
        None if state.status == StepStatus::Failed => RunEvent::StepFailed {
            step,
            message: message.unwrap_or_default(),
            at: state.failed_at.unwrap_or(moment),
        },
        None => RunEvent::StepCompleted {
            step,
            tasks: tasks(state),
            at: state.completed_at.unwrap_or(moment),
        },
    }
}

fn end_of_run<F: Flow>(seen: &RunSnapshot<F>, states: &States<'_>) -> Option<RunEvent<F::Step>> {
    let at = seen.ended_at()?;
    if seen.status() == RunStatus::Completed {
        return Some(RunEvent::RunCompleted { at });
    }
    let culprit = zip(F::Step::ALL, states).find_map(|(&step, state)| {
        let is_failed = state.as_ref()?.status == StepStatus::Failed;
        is_failed.then_some(step)
    });
    Some(RunEvent::RunFailed {
        step: culprit,
        message: seen.error_message().unwrap_or_default().to_owned(),
        at,
    })
}
