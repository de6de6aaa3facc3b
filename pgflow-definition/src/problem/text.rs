//! Problems as sentences: what is wrong; what was expected; how to fix it.

use std::error::Error;
use std::fmt::{self, Display, Formatter, Write};

use super::{CycleEdge, Part, Problem, ProblemKind, Subject};
use crate::options::{MAX_OPTION, OptionName, OptionProblem};
use crate::queue::{self, MAX_QUEUE_NAME};
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
                let (what, slug) = match subject {
                    Subject::Flow { slug } => ("flow", slug),
                    Subject::Step { slug, .. } => ("step", slug),
                };
                write!(
                    f,
                    "{what} slug {} {}; set another with `slug = \"..\"`",
                    Quoted(slug),
                    problem.describe(slug)
                )
            }
            ProblemKind::BindingName => write!(
                f,
                "{subject} can't have this name; `input`, `item`, `ctx` and `state` are what parameters of steps are bound by; rename \
                 the step"
            ),
            ProblemKind::DuplicateStepSlug { first, first_slug } => write!(
                f,
                "{subject} has the slug of step {} at index {first}; slugs must differ in more than case, because queue names are \
                 lower case; set another with `slug = \"..\"`",
                Quoted(first_slug)
            ),
            ProblemKind::StepQueuesWithoutSteps => write!(
                f,
                "{subject} has a queue for each step, but no step; at least one is needed; add a step, or remove `with_step_queues`"
            ),
            ProblemKind::DefaultQueueNameTooLong { queue } => write!(
                f,
                "{subject} has a slug of {} characters, which names its queue; a queue name has at most {MAX_QUEUE_NAME}; set a \
                 shorter one with `slug = \"..\"`",
                queue.len()
            ),
            ProblemKind::FlowQueueNameTooLong { .. } => no_step_queues(f, subject),
            ProblemKind::StepQueueNameTooLong { readable, fallback } => {
                no_queue(f, subject, readable, fallback)
            }
            ProblemKind::UnknownDependency {
                name,
                differs_in_case,
            } => {
                let (verb, name) = (verb(*part), Quoted(name));
                write!(
                    f,
                    "{subject} {verb} {name}, but the flow has no such step; the exact slug of another step was expected; "
                )?;
                match differs_in_case {
                    Some(twin) => write!(f, "write {}", Quoted(twin)),
                    None => f.write_str("correct the name, or add the step"),
                }
            }
            ProblemKind::SelfDependency => write!(
                f,
                "{subject} {} itself, so it could never start; another step was expected; name one, or remove the dependency",
                verb(*part)
            ),
            ProblemKind::DuplicateDependency { name } => {
                write!(
                    f,
                    "{subject} lists {} twice; each dependency is listed once; remove the second",
                    Quoted(name)
                )
            }
            ProblemKind::Cycle(edges) => cycle(f, edges),
            ProblemKind::MapArity { count } => write!(
                f,
                "{subject} is a map step with {count} dependencies; a map step has one at most, the step whose list it maps over; keep \
                 one, and gather other inputs in that step"
            ),
            ProblemKind::OutOfOrder { dependency } => write!(
                f,
                "{subject} stands before {}, which it depends on; each step was expected after its dependencies; move it behind them",
                Quoted(dependency)
            ),
            ProblemKind::ConditionOnRootMap => write!(
                f,
                "`{part}` of {subject} could never hold: the step maps over the flow's input, and a list contains no object; a \
                 condition needs a subject with keys; move it to a step that depends on this one"
            ),
            ProblemKind::ConditionNotJson { message } => {
                write!(
                    f,
                    "`{part}` of {subject} is not JSON ({message}); a JSON object was expected; {CORRECT_PATTERN}"
                )
            }
            ProblemKind::ConditionNotAnObject { found } => {
                write!(
                    f,
                    "`{part}` of {subject} is {found}; a JSON object was expected; {CORRECT_PATTERN}"
                )
            }
            ProblemKind::ConditionHoldsNul => write!(
                f,
                "`{part}` of {subject} holds the character U+0000; Postgres stores any other in JSON; remove it from the pattern"
            ),
            ProblemKind::ConditionNumberNotExact { number } => write!(
                f,
                "`{part}` of {subject} holds a number that would become {number}; an integer of at most 64 bits was expected; use a \
                 smaller number, or a string on both sides"
            ),
            ProblemKind::ConditionKeyNotADependency { key, dependencies } => {
                write!(
                    f,
                    "`{part}` of {subject} has the key {}, which is not a dependency; it is compared with ",
                    Quoted(key)
                )?;
                write!(
                    f,
                    "the outputs of {}; use these as keys, or add the dependency",
                    List(dependencies)
                )
            }
            ProblemKind::Option {
                name,
                value,
                problem,
            } => option(f, subject, *name, *value, *problem),
        }
    }
}

const CORRECT_PATTERN: &str = "write for example `{\"plan\": \"premium\"}`";

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
        "{subject} can't have step queues: even the shortest name, {}, has {} characters; a queue name has at most {MAX_QUEUE_NAME}, \
         which leaves {} for the slug of the flow; set a shorter one with `slug = \"..\"`, or remove `with_step_queues`, so that the flow \
         has a single queue",
        Quoted(&shortest),
        shortest.len(),
        (MAX_QUEUE_NAME + slug.len()).saturating_sub(shortest.len())
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
        "{subject} can't have a queue: {} has {} characters, and {} still has {}; a queue name has at most {MAX_QUEUE_NAME}; shorten \
         the slug of the step or of the flow with `slug = \"..\"`, or remove `with_step_queues`, so that the flow has a single queue",
        Quoted(readable),
        readable.len(),
        Quoted(fallback),
        fallback.len()
    )
}

fn cycle(f: &mut Formatter<'_>, edges: &[CycleEdge]) -> fmt::Result {
    f.write_str("these steps wait for each other and could never start: ")?;
    for edge in edges {
        write!(f, "{} -> ", Quoted(&edge.slug))?;
    }
    if let Some(first) = edges.first() {
        write!(f, "{}", Quoted(&first.slug))?;
    }
    f.write_str("; dependencies must not lead back to where they start; remove one of them")
}

fn option(
    f: &mut Formatter<'_>,
    subject: &Subject,
    name: OptionName,
    value: u32,
    problem: OptionProblem,
) -> fmt::Result {
    let (minimum, name, unit) = (name.minimum(), name.as_str(), name.unit());
    let (bound, limit, advice) = match problem {
        OptionProblem::TooSmall => ("least", minimum, "raise it"),
        OptionProblem::TooLarge => ("most", MAX_OPTION, "lower it"),
    };
    write!(
        f,
        "`{name}` of {subject} is {value} {unit}; the {bound} is {limit}; {advice}, or leave it out"
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

/// The word for it in attributes, where it has one.
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
            Self::Option(name) => name.as_str(),
        })
    }
}

/// A name in back-ticks. It may be anything, so it is escaped and cut to what a valid name can have.
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
            if position > 0 {
                f.write_str(", ")?;
            }
            write!(f, "{}", Quoted(name))?;
        }
        Ok(())
    }
}
