//! All checks of a definition, in the order in which Postgres makes them.

#[cfg(feature = "shape")]
mod condition_texts;
mod edges;
mod end_steps;
mod names;
mod values;

use crate::problem::{Part, Problem, ProblemKind, Subject};
use crate::{FlowDefinition, StepDefinition};

impl FlowDefinition<'_> {
    /// Everything that is wrong with the definition: slugs, duplicates and queue names first, as
    /// Postgres checks them, then the graph, conditions and options. A mistake is reported once,
    /// without those that merely follow from it.
    ///
    /// The text of conditions is read with feature `shape` only.
    pub fn problems(&self) -> Vec<Problem> {
        let mut report = Report {
            flow: self,
            problems: Vec::new(),
        };
        names::check(&mut report);
        edges::check(&mut report);
        end_steps::check(&mut report);
        values::check(&mut report);
        #[cfg(feature = "shape")]
        condition_texts::check(&mut report);
        report.problems
    }

    pub(crate) fn problem_on_step(&self, index: usize, part: Part, kind: ProblemKind) -> Problem {
        let subject = Subject::Step {
            index,
            slug: self.steps[index].slug.into(),
        };
        Problem {
            subject,
            part,
            kind,
        }
    }
}

/// Collects problems of one flow.
struct Report<'d> {
    flow: &'d FlowDefinition<'d>,
    problems: Vec<Problem>,
}

impl<'d> Report<'d> {
    fn steps(&self) -> impl Iterator<Item = (usize, &'d StepDefinition<'d>)> + use<'d> {
        self.flow.steps.iter().enumerate()
    }

    fn on_flow(&mut self, part: Part, kind: ProblemKind) {
        let subject = Subject::Flow {
            slug: self.flow.slug.into(),
        };
        self.problems.push(Problem {
            subject,
            part,
            kind,
        });
    }

    fn on_step(&mut self, index: usize, part: Part, kind: ProblemKind) {
        self.problems
            .push(self.flow.problem_on_step(index, part, kind));
    }

    /// Returns whether something was found on this step, or on the flow for `None`.
    fn has_problem_on(&self, step: Option<usize>) -> bool {
        self.problems.iter().any(|problem| problem.step() == step)
    }
}
