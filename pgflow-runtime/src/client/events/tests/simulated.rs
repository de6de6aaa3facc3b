//! A run that goes at random through what a run can go through, and how it looked after each
//! transaction.

use chrono::{DateTime, TimeDelta, Utc};
use fastrand::Rng;
use serde_json::{Value, json};

use super::{Diamond, snapshot};
use crate::{client::RunSnapshot, flow::Flow};

/// The run, by its transactions.
pub(super) struct Simulated {
    /// The events that happened, in order: `list started`.
    pub(super) log: Vec<String>,
    /// The snapshots, and the length of the log at each of them.
    pub(super) looks: Vec<(RunSnapshot<Diamond>, usize)>,
}

pub(super) struct Run<'a> {
    rng: &'a mut Rng,
    /// The clock is set back from time to time.
    is_clock_bad: bool,
    now: DateTime<Utc>,
    started_at: DateTime<Utc>,
    /// The columns of the run that change.
    ended: Value,
    steps: Vec<Value>,
    log: Vec<String>,
}

impl Simulated {
    pub(super) fn new(rng: &mut Rng, is_clock_bad: bool) -> Self {
        let mut run = Run::start(rng, is_clock_bad);
        let mut looks = vec![(run.look(), run.log.len())];
        while !run.is_ended() {
            for _ in 0..run.rng.usize(1..4) {
                run.go_on();
            }
            looks.push((run.look(), run.log.len()));
        }
        Self {
            log: run.log,
            looks,
        }
    }
}

impl<'a> Run<'a> {
    fn start(rng: &'a mut Rng, is_clock_bad: bool) -> Self {
        let now = DateTime::UNIX_EPOCH;
        let steps = Diamond::DEFINITION.steps.iter();
        let steps = steps.map(|step| {
            json!({"step_slug": step.slug, "status": "created", "remaining_deps": step.depends_on.len(), "created_at": now})
        });
        Self {
            rng,
            is_clock_bad,
            now,
            started_at: now,
            ended: json!({"status": "started"}),
            steps: steps.collect(),
            log: vec!["run started".to_owned()],
        }
    }

    fn is_ended(&self) -> bool {
        self.ended["status"] != "started"
    }

    fn look(&self) -> RunSnapshot<Diamond> {
        snapshot(self.started_at, &self.ended, &self.steps)
    }

    /// A moment later.
    fn tick(&mut self) -> Value {
        let back = self.is_clock_bad && self.rng.u8(..) < 64;
        let seconds = if back { -5 } else { 1 };
        self.now += TimeDelta::seconds(seconds);
        json!(self.now)
    }

    fn note(&mut self, step: usize, what: &str) {
        let slug = Diamond::DEFINITION.steps[step].slug;
        self.log.push(format!("{slug} {what}"));
    }

    fn is(&self, step: usize, status: &str) -> bool {
        self.steps[step]["status"] == status
    }

    fn has_ended(&self, step: usize) -> bool {
        !self.is(step, "created") && !self.is(step, "started")
    }

    fn is_ready(&self, step: usize) -> bool {
        let definition = &Diamond::DEFINITION;
        let mut dependencies = definition.steps[step].depends_on.iter();
        self.is(step, "created")
            && dependencies.all(|slug| self.has_ended(definition.step_index(slug).unwrap()))
    }

    /// One thing happens to one step.
    fn go_on(&mut self) {
        let steps = 0..self.steps.len();
        let able: Vec<usize> = steps
            .filter(|&step| !self.is_ended() && (self.is_ready(step) || self.is(step, "started")))
            .collect();
        let Some(&step) = self.rng.choice(&able) else {
            return;
        };
        match (self.is(step, "created"), self.rng.u8(..100)) {
            (_, 0..2) => self.fail(step),
            (true, 2..10) => self.skip(step, "condition_unmet"),
            (false, 2..6) => self.skip(step, "handler_failed"),
            (true, _) => self.start_step(step),
            (false, _) => self.complete_task(step),
        }
        if !self.is_ended() && (0..self.steps.len()).all(|step| self.has_ended(step)) {
            self.ended = json!({"status": "completed", "completed_at": self.tick()});
            self.log.push("run completed".to_owned());
        }
    }

    fn start_step(&mut self, step: usize) {
        let tasks = match Diamond::DEFINITION.steps[step].slug {
            "each" => self.rng.u32(0..4),
            _ => 1,
        };
        self.steps[step]["status"] = json!("started");
        self.steps[step]["started_at"] = self.tick();
        self.steps[step]["initial_tasks"] = json!(tasks);
        self.steps[step]["remaining_tasks"] = json!(tasks);
        self.note(step, "started");
        if tasks == 0 {
            self.complete(step);
        }
    }

    fn complete_task(&mut self, step: usize) {
        let remaining = self.steps[step]["remaining_tasks"].as_u64().unwrap() - 1;
        self.steps[step]["remaining_tasks"] = json!(remaining);
        if remaining == 0 {
            self.complete(step);
        }
    }

    fn complete(&mut self, step: usize) {
        self.steps[step]["status"] = json!("completed");
        self.steps[step]["completed_at"] = self.tick();
        self.note(step, "completed");
    }

    /// The step, and all that depends on it.
    fn skip(&mut self, step: usize, reason: &str) {
        self.steps[step]["status"] = json!("skipped");
        self.steps[step]["skip_reason"] = json!(reason);
        self.steps[step]["skipped_at"] = self.tick();
        self.steps[step]["remaining_tasks"] = Value::Null;
        self.note(step, "skipped");
        let slug = Diamond::DEFINITION.steps[step].slug;
        for (other, definition) in Diamond::DEFINITION.steps.iter().enumerate() {
            if definition.depends_on.contains(&slug) && self.is(other, "created") {
                self.skip(other, "dependency_skipped");
            }
        }
    }

    fn fail(&mut self, step: usize) {
        self.steps[step]["status"] = json!("failed");
        self.steps[step]["failed_at"] = self.tick();
        self.note(step, "failed");
        self.ended = json!({"status": "failed", "failed_at": self.tick()});
        self.log.push("run failed".to_owned());
    }
}
