//! The definition of a flow, as the model and the database are given it.

use std::fmt;

use serde_json::Value;

/// The fate of a step whose condition is unmet, or whose task is out of attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Skip,
    SkipCascade,
    Fail,
}

impl Mode {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Skip => "skip",
            Self::SkipCascade => "skip-cascade",
            Self::Fail => "fail",
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Step {
    pub(crate) slug: String,
    pub(crate) is_map: bool,
    /// Places of earlier steps, ascending.
    pub(crate) deps: Vec<usize>,
    pub(crate) required: Option<Value>,
    pub(crate) forbidden: Option<Value>,
    pub(crate) when_unmet: Mode,
    pub(crate) when_exhausted: Mode,
    /// A map that does without elements that fail.
    pub(crate) is_tolerant: bool,
    /// `None`: the flow's.
    pub(crate) max_attempts: Option<i32>,
    pub(crate) base_delay: Option<i32>,
    pub(crate) timeout: Option<i32>,
    pub(crate) start_delay: Option<i32>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Flow {
    pub(crate) steps: Vec<Step>,
    pub(crate) max_attempts: i32,
    pub(crate) base_delay: i32,
    pub(crate) timeout: i32,
    /// `true` if each step has a queue of its own.
    pub(crate) own_queues: bool,
}

impl Flow {
    pub(crate) fn max_attempts(&self, step: usize) -> i32 {
        self.steps[step].max_attempts.unwrap_or(self.max_attempts)
    }

    pub(crate) fn base_delay(&self, step: usize) -> i32 {
        self.steps[step].base_delay.unwrap_or(self.base_delay)
    }

    pub(crate) fn timeout(&self, step: usize) -> i32 {
        self.steps[step].timeout.unwrap_or(self.timeout)
    }

    /// Queue 0 is the flow's, queue n + 1 that of step n.
    pub(crate) fn queue(&self, step: usize) -> usize {
        if self.own_queues { step + 1 } else { 0 }
    }

    /// All queues that its tasks go to.
    pub(crate) fn queues(&self) -> Vec<usize> {
        if self.own_queues {
            (1..=self.steps.len()).collect()
        } else {
            vec![0]
        }
    }

    pub(crate) fn has_root_map(&self) -> bool {
        self.steps
            .iter()
            .any(|step| step.is_map && step.deps.is_empty())
    }

    /// The steps that depend on one directly.
    pub(crate) fn dependents(&self, step: usize) -> impl Iterator<Item = usize> {
        (0..self.steps.len()).filter(move |&other| self.steps[other].deps.contains(&step))
    }

    /// The slugs of the maps that run over what a step returns.
    pub(crate) fn maps_over(&self, step: usize) -> Vec<&str> {
        self.dependents(step)
            .filter(|&other| self.steps[other].is_map)
            .map(|other| self.steps[other].slug.as_str())
            .collect()
    }

    /// Returns whether a step has to return an array.
    pub(crate) fn must_return_array(&self, step: usize) -> bool {
        !self.steps[step].is_map && !self.maps_over(step).is_empty()
    }

    fn describe(&self, step: &Step) -> String {
        let kind = if step.is_map { "map" } else { "single" };
        let mut parts = vec![format!("{kind} {}", step.slug)];
        if !step.deps.is_empty() {
            let deps: Vec<&str> = step
                .deps
                .iter()
                .map(|&dep| self.steps[dep].slug.as_str())
                .collect();
            parts.push(format!("after {}", deps.join(" and ")));
        }
        for (name, pattern) in [("if", &step.required), ("if_not", &step.forbidden)] {
            parts.extend(pattern.as_ref().map(|pattern| format!("{name} {pattern}")));
        }
        if step.required.is_some() || step.forbidden.is_some() {
            parts.push(format!("when_unmet {}", step.when_unmet.name()));
        }
        if step.when_exhausted != Mode::Fail {
            parts.push(format!("when_exhausted {}", step.when_exhausted.name()));
        }
        if step.is_tolerant {
            parts.push("on_element_failure null".to_owned());
        }
        for (name, option) in [
            ("max_attempts", step.max_attempts),
            ("base_delay", step.base_delay),
            ("timeout", step.timeout),
            ("start_delay", step.start_delay),
        ] {
            parts.extend(option.map(|value| format!("{name} {value}")));
        }
        parts.join(", ")
    }
}

impl fmt::Display for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "  max_attempts {}, base_delay {}, timeout {}, {}",
            self.max_attempts,
            self.base_delay,
            self.timeout,
            if self.own_queues {
                "a queue for each step"
            } else {
                "one queue"
            }
        )?;
        for step in &self.steps {
            writeln!(f, "  {}", self.describe(step))?;
        }
        Ok(())
    }
}
