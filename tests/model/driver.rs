//! Drives the model and the database through one case, call by call, and compares them after each.

use std::collections::BTreeMap;

use sqlx::postgres::PgConnection;
use uuid::Uuid;

use super::actions::{Action, Shape, output, show, started, waiting_queues};
use super::call::{Answer, Call, Completion, Failure, TaskKey};
use super::compare;
use super::events;
use super::generator::Case;
use super::invariants;
use super::setup;
use super::snapshot::Snapshot;
use super::sql;
use super::state::{Hidden, Model, Task, TaskStatus, Text};

/// The number of times that something happened; proves that the cases reach their subjects.
pub(crate) type Tally = BTreeMap<String, usize>;

pub(crate) struct Driver<'a> {
    connection: &'a mut PgConnection,
    pub(crate) model: Model,
    pub(crate) state: Snapshot,
    pub(crate) calls: Vec<String>,
    pub(crate) tally: Tally,
}

impl<'a> Driver<'a> {
    /// Defines the flow of a case.
    pub(crate) async fn new(connection: &'a mut PgConnection, case: &Case) -> Result<Self, String> {
        setup::define(connection, &case.flow)
            .await
            .map_err(|error| format!("the flow can not be defined: {error}"))?;
        let state = Snapshot::default().next(connection, &case.flow).await?;
        Ok(Self {
            connection,
            model: Model::new(case.flow.clone()),
            state,
            calls: Vec::new(),
            tally: Tally::new(),
        })
    }

    /// Runs the case to the end of all its runs.
    pub(crate) async fn drive(&mut self, case: &Case) -> Result<(), String> {
        let mut inputs = case.inputs.iter().enumerate().peekable();
        for (place, action) in case.actions.iter().enumerate() {
            // All have started when half of the actions have been done.
            let is_due = |start: usize| start * case.actions.len() <= 2 * place * case.inputs.len();
            while let Some((_, input)) = inputs.next_if(|(start, _)| is_due(*start)) {
                self.start(input).await?;
            }
            self.act(action).await?;
        }
        for (_, input) in inputs {
            self.start(input).await?;
        }
        self.finish().await?;
        self.report_late().await?;
        self.check_the_whole().await
    }

    async fn start(&mut self, input: &serde_json::Value) -> Result<(), String> {
        let input = input.clone();
        self.perform(Call::Start { input }).await
    }

    async fn act(&mut self, action: &Action) -> Result<(), String> {
        if let Action::Stall {
            task,
            times,
            is_death,
        } = action
        {
            return self.stall(*task, *times, *is_death).await;
        }
        match action.resolve(&self.model) {
            Some(call) => self.perform(call).await,
            None => Ok(()),
        }
    }

    /// Its workers die, one after the other.
    async fn stall(&mut self, task: usize, times: usize, is_death: bool) -> Result<(), String> {
        let started = started(&self.model);
        let Some(&key) = task
            .checked_rem(started.len())
            .and_then(|place| started.get(place))
        else {
            return Ok(());
        };
        for _ in 0..times {
            let task = self.model.task(key).expect("a task stays");
            if task.status != TaskStatus::Started {
                break;
            }
            let queue = task.message.queue;
            if let (true, Some(worker)) = (is_death, task.worker) {
                self.perform(Call::Lose { worker }).await?;
            } else {
                let seconds = self.model.flow.timeout(key.step) + 3600;
                let tasks = vec![key];
                self.perform(Call::Age { tasks, seconds }).await?;
                self.perform(Call::Recover).await?;
            }
            let claim = Call::Claim {
                worker: queue * 2,
                max: 100,
            };
            self.perform(claim).await?;
        }
        Ok(())
    }

    /// Does a call on both, and compares.
    pub(crate) async fn perform(&mut self, call: Call) -> Result<(), String> {
        self.calls.push(call.to_string());
        let next_run = run_id(self.model.runs.len());
        let answer = sql::call(self.connection, &self.model, &call, next_run).await?;
        let state = self.state.next(self.connection, &self.model.flow).await?;
        let (expected, events) = self.model.apply(&call, next_run);
        compare::answers(&expected, &answer)?;
        compare::adopt_messages(&mut self.model, &self.state, &state)?;
        compare::states(&self.model, &self.state, &state)?;
        events::compare(&self.model, &events, &state.events)?;
        invariants::check(&self.model.flow, &self.state, &state, &call)?;
        self.state = state;
        self.count(&answer);
        for event in &events {
            let reason = event.skip_reason.unwrap_or_default();
            self.count_one(&format!("{} {reason}", event.kind));
        }
        let read_in_vain = |task: &Task| {
            task.message.decided_in == self.model.call
                && matches!(task.message.hidden, Hidden::UntilRecovery | Hidden::Briefly)
        };
        if self.model.tasks().any(|(_, task)| read_in_vain(task)) {
            self.count_one("read while its task runs");
        }
        // A moment later.
        let is_brief = |task: &Task| task.message.hidden == Hidden::Briefly;
        match show(&self.model, |_, task| is_brief(task)) {
            Some(call) => Box::pin(self.perform(call)).await,
            None => Ok(()),
        }
    }

    fn count(&mut self, answer: &Answer) {
        match answer {
            Answer::Refused(code) => self.count_one(&format!("refused {code}")),
            Answer::Items { outcomes, .. } => {
                for outcome in outcomes {
                    self.count_one(&format!("item {outcome}"));
                }
            }
            _ => {}
        }
    }

    fn count_one(&mut self, what: &str) {
        *self.tally.entry(what.trim_end().to_owned()).or_default() += 1;
    }

    /// Does all that is left to do.
    async fn finish(&mut self) -> Result<(), String> {
        while !self.model.has_ended() {
            let queued = |_, task: &Task| task.status == TaskStatus::Queued;
            if let Some(call) = show(&self.model, queued) {
                self.perform(call).await?;
            }
            for queue in waiting_queues(&self.model) {
                let worker = queue * 2 + 1;
                self.perform(Call::Claim { worker, max: 100 }).await?;
            }
            let items: Vec<Completion> = started(&self.model)
                .into_iter()
                .map(|task| {
                    let number = 7 * task.run + 5 * task.step + task.index;
                    Completion {
                        task,
                        attempt: None,
                        output: output(&self.model, task, number, Shape::Right),
                    }
                })
                .collect();
            if items.is_empty() {
                return Err("a run has not ended, and nothing is left to do".to_owned());
            }
            self.perform(Call::Complete(items)).await?;
        }
        Ok(())
    }

    /// Reports on ended tasks, which must change nothing.
    async fn report_late(&mut self) -> Result<(), String> {
        let ended: Vec<TaskKey> = self.model.tasks().map(|(key, _)| key).collect();
        let late = ended.iter().step_by(3).map(|&task| Completion {
            task,
            attempt: None,
            output: Some("late".into()),
        });
        let late: Vec<Completion> = late.collect();
        if let Some(&task) = ended.last() {
            self.perform(Call::Complete(late)).await?;
            let failure = Failure {
                task,
                attempt: None,
                message: "late".to_owned(),
                retry_delay: None,
                retryable: true,
            };
            self.perform(Call::Fail(failure)).await?;
        }
        Ok(())
    }

    /// Checks that the rows equal the changes that were read one by one, and that the log of all
    /// transitions is in order.
    async fn check_the_whole(&mut self) -> Result<(), String> {
        let flow = &self.model.flow;
        let whole = Snapshot::default().next(self.connection, flow).await?;
        if !whole.is_same_as(&self.state) {
            return Err("a change of the state was not seen".to_owned());
        }
        for (_, task) in self.model.clone().tasks() {
            self.count_one(&format!("task {}", task.status.name()));
            for (what, is_so) in [
                ("task permanently stalled", task.is_permanently_stalled),
                ("task requeued", task.requeues > 0),
                ("task tried again", task.attempts > 1),
                ("task given back or postponed", task.uncounted > 0),
                ("task postponed at last", task.postponed > 0),
                ("task ran alone", task.runs_alone),
                (
                    "task to blame",
                    matches!(task.error, Some(Text::Culprit { .. })),
                ),
                (
                    "task given up",
                    matches!(task.error, Some(Text::GivenUp(_))),
                ),
            ] {
                if is_so {
                    self.count_one(what);
                }
            }
        }
        let broken: Vec<(String, String)> =
            sqlx::query_as("select invariant, what from test_log.violations()")
                .fetch_all(&mut *self.connection)
                .await
                .map_err(|error| format!("the log of transitions can not be read: {error}"))?;
        match broken.into_iter().next() {
            None => Ok(()),
            Some((invariant, what)) => Err(format!("the log of transitions: {invariant}: {what}")),
        }
    }
}

/// The ids of runs are in another order than their starts.
fn run_id(number: usize) -> Uuid {
    let order = (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    Uuid::from_u64_pair(order, number as u64)
}
