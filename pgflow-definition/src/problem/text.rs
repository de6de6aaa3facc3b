//! Problems as sentences: what is wrong; what was expected; how to fix it.

use std::error::Error;
use std::fmt::{self, Display, Formatter, Write};

use super::{ConditionProblem, CycleEdge, Part, Problem, ProblemKind, Subject};
use crate::options::{MAX_OPTION, OptionName, OptionProblem};
use crate::queue::{self, MAX_QUEUE_NAME, MAX_STEP_QUEUED_FLOW_SLUG};
use crate::slug::MAX_SLUG;

impl Error for Problem {}

impl Display for Problem {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self {
            subject,
            part,
            kind,
        } = self;
        match kind {
            ProblemKind::Slug(problem) => {
                let (Subject::Flow { slug } | Subject::Step { slug, .. }) = subject;
                write!(
                    f,
                    "the slug of {subject} {}; {SET_SLUG}",
                    problem.describe(slug)
                )
            }
            ProblemKind::BindingName => write!(
                f,
                "{subject} can't have this name; `input`, `item`, `ctx` and `state` are reserved \
                 for parameters of steps; rename the step"
            ),
            ProblemKind::DuplicateStepSlug { first, first_slug } => write!(
                f,
                "{subject} has the slug of step {} at index {first}; slugs must differ in more \
                 than case, because queue names are lower case; {SET_SLUG}",
                Quoted(first_slug)
            ),
            ProblemKind::StepQueuesWithoutSteps => write!(
                f,
                "{subject} has a queue for each step, but no step; at least one was expected; \
                 add a step, or remove `with_step_queues`"
            ),
            ProblemKind::DefaultQueueNameTooLong { queue } => write!(
                f,
                "{subject} has a slug of {} characters, which is also the name of its queue; \
                 a queue name has at most {MAX_QUEUE_NAME}; {SET_SLUG}",
                queue.len()
            ),
            ProblemKind::FlowQueueNameTooLong { .. } => no_step_queues(f, subject),
            ProblemKind::StepQueueNameTooLong { readable, fallback } => {
                no_queue(f, subject, readable, fallback)
            }
            ProblemKind::UnknownDependency {
                name,
                differs_in_case,
            } => unknown(f, subject, *part, name, differs_in_case.as_deref()),
            ProblemKind::SelfDependency => write!(
                f,
                "{subject} {} itself, so it could never start; name another step, or remove the \
                 dependency",
                verb(*part)
            ),
            ProblemKind::DuplicateDependency { name } => write!(
                f,
                "{subject} lists {} twice; remove one of them",
                Quoted(name)
            ),
            ProblemKind::Cycle(edges) => cycle(f, edges),
            ProblemKind::MapArity { count } => write!(
                f,
                "{subject} is a map step with {count} dependencies; a map step has one at most, \
                 the step whose list it maps over; keep that one, and gather other inputs in it"
            ),
            ProblemKind::OutOfOrder { dependency } => write!(
                f,
                "{subject} stands before {}, which it depends on; each step was expected after \
                 its dependencies; move it behind them",
                Quoted(dependency)
            ),
            ProblemKind::NoElements => write!(
                f,
                "`on_element_failure` is only for steps with `map`, and {subject} has none; remove it, or \
                 write `map = ..`; to choose what follows when the step itself fails, use \
                 `when_exhausted`"
            ),
            ProblemKind::EndStepWithPart { runs_on } => {
                end_step_with_part(f, subject, *part, runs_on.as_str())
            }
            ProblemKind::DuplicateEndStep { runs_on, first } => write!(
                f,
                "{subject} and step {} both run `on = {}`; a flow has one such step at most; do \
                 both in one step",
                Quoted(first),
                runs_on.as_str()
            ),
            ProblemKind::EndStepAsDependency { name, runs_on } => {
                end_step_as_dependency(f, subject, *part, name, runs_on.as_str())
            }
            ProblemKind::Condition(problem) => condition(f, subject, *part, problem),
            ProblemKind::Option {
                name,
                value,
                problem,
            } => option(f, subject, *name, *value, *problem),
        }
    }
}

const SET_SLUG: &str = "set another with `slug = \"..\"`";

fn verb(part: Part) -> &'static str {
    if part == Part::MapSource {
        "maps over"
    } else {
        "depends on"
    }
}

fn no_step_queues(f: &mut Formatter<'_>, subject: &Subject) -> fmt::Result {
    let (Subject::Flow { slug } | Subject::Step { slug, .. }) = subject;
    let shortest = queue::fallback(slug, 0);
    write!(
        f,
        "{subject} can't have step queues: even the shortest name, {}, has {} characters; a queue \
         name has at most {MAX_QUEUE_NAME}, which leaves {MAX_STEP_QUEUED_FLOW_SLUG} for the slug \
         of the flow; {SET_SLUG}, or remove `with_step_queues`, so that the flow has a single \
         queue",
        Quoted(&shortest),
        shortest.len()
    )
}

fn no_queue(
    f: &mut Formatter<'_>,
    subject: &Subject,
    readable: &str,
    fallback: &str,
) -> fmt::Result {
    write!(
        f,
        "{subject} can't have a queue: {} has {} characters, and {} still has {}; a queue name has \
         at most {MAX_QUEUE_NAME}; shorten the slug of the step or of the flow with \
         `slug = \"..\"`, or remove `with_step_queues`, so that the flow has a single queue",
        Quoted(readable),
        readable.len(),
        Quoted(fallback),
        fallback.len()
    )
}

fn unknown(
    f: &mut Formatter<'_>,
    subject: &Subject,
    part: Part,
    name: &str,
    differs_in_case: Option<&str>,
) -> fmt::Result {
    write!(
        f,
        "{subject} {} {}, but the flow has no such step; the exact slug of another step was \
         expected; ",
        verb(part),
        Quoted(name)
    )?;
    match differs_in_case {
        Some(twin) => write!(f, "write {}", Quoted(twin)),
        None => f.write_str("correct the name, or add the step"),
    }
}

fn cycle(f: &mut Formatter<'_>, edges: &[CycleEdge]) -> fmt::Result {
    f.write_str("these steps wait for each other and could never start: ")?;
    for edge in edges {
        write!(f, "{} -> ", Quoted(&edge.slug))?;
    }
    if let Some(first) = edges.first() {
        write!(f, "{}", Quoted(&first.slug))?;
    }
    f.write_str("; remove one of these dependencies")
}

fn end_step_with_part(
    f: &mut Formatter<'_>,
    subject: &Subject,
    part: Part,
    on: &str,
) -> fmt::Result {
    write!(
        f,
        "{subject} runs when the run has ended (`on = {on}`), so it can have no `{part}`; it gets \
         the outputs of all completed steps from its parameter `end`; remove `{part}`, or `on`"
    )
}

fn end_step_as_dependency(
    f: &mut Formatter<'_>,
    subject: &Subject,
    part: Part,
    name: &str,
    on: &str,
) -> fmt::Result {
    write!(
        f,
        "{subject} {} {}, which runs when the run has ended (`on = {on}`); a step of the run was \
         expected; name one, or remove the dependency",
        verb(part),
        Quoted(name)
    )
}

fn condition(
    f: &mut Formatter<'_>,
    subject: &Subject,
    part: Part,
    problem: &ConditionProblem,
) -> fmt::Result {
    const EXPECTED: &str =
        "a JSON object was expected; write for example `{\"plan\": \"premium\"}`";
    write!(f, "`{part}` of {subject} ")?;
    match problem {
        ConditionProblem::OnRootMap => f.write_str(
            "could never match: the step maps over the flow's input, and a list contains no \
             object; an input with keys was expected; move the condition to a step that depends on \
             this one",
        ),
        ConditionProblem::NotJson { message } => write!(f, "is not JSON ({message}); {EXPECTED}"),
        ConditionProblem::NotAnObject { found } => write!(f, "is {found}; {EXPECTED}"),
        ConditionProblem::HoldsNul => f.write_str(
            "holds the character U+0000; JSON in Postgres has any character but this; remove it",
        ),
        ConditionProblem::InexactNumber { number } => write!(
            f,
            "holds a number that would be stored as {number}; an integer of at most 64 bits was \
             expected; use a smaller number, or a string in the data as well",
        ),
        ConditionProblem::NotADependency { key, dependencies } => write!(
            f,
            "has the key {}, which is not a dependency, so it could never match; the keys are {}; \
             correct the key, or add the dependency",
            Quoted(key),
            List(dependencies)
        ),
    }
}

fn option(
    f: &mut Formatter<'_>,
    subject: &Subject,
    name: OptionName,
    value: u32,
    problem: OptionProblem,
) -> fmt::Result {
    let (bound, limit, fix) = match problem {
        OptionProblem::TooSmall => ("least", name.minimum(), "raise it"),
        OptionProblem::TooLarge => ("most", MAX_OPTION, "lower it"),
    };
    let (name, unit) = (name.as_str(), name.unit());
    write!(
        f,
        "`{name}` of {subject} is {value} {unit}; the {bound} is {limit}; {fix}, or leave it out"
    )
}

impl Display for Subject {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flow { slug } => write!(f, "flow {}", Quoted(slug)),
            Self::Step { slug, .. } => write!(f, "step {}", Quoted(slug)),
        }
    }
}

/// As attributes call it.
impl Display for Part {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Slug => "slug",
            Self::QueueMode => "with_step_queues",
            Self::QueueName => "queue name",
            Self::Dependencies | Self::Dependency(_) => "depends_on",
            Self::MapSource => "map",
            Self::Required => "if",
            Self::Forbidden => "if_not",
            Self::ElementFailure => "on_element_failure",
            Self::WhenUnmet => "when_unmet",
            Self::WhenExhausted => "when_exhausted",
            Self::RunsOn => "on",
            Self::Option(name) => name.as_str(),
        })
    }
}

/// A name in back-ticks. It may be anything, so it is escaped, and cut where a valid one ends.
struct Quoted<'a>(&'a str);

impl Display for Quoted<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut rest = self.0.chars();
        f.write_char('`')?;
        for character in rest.by_ref().take(MAX_SLUG) {
            write!(f, "{}", character.escape_debug())?;
        }
        f.write_str(if rest.next().is_some() { "..`" } else { "`" })
    }
}

struct List<'a>(&'a [String]);

impl Display for List<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (position, name) in self.0.iter().enumerate() {
            let separator = if position > 0 { ", " } else { "" };
            write!(f, "{separator}{}", Quoted(name))?;
        }
        Ok(())
    }
}
