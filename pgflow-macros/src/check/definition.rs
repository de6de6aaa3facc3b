//! The rules of `pgflow-definition`, with each problem brought back to the token that it comes
//! from.

use pgflow_definition::{
    ConditionProblem, Part, Problem, ProblemKind, Subject, slug::BINDING_NAMES,
};
use proc_macro2::{Ident, Span};

use crate::{
    errors::Errors,
    model::{Edge, Flow, Step},
};

pub(super) fn check(flow: &Flow<'_>, errors: &mut Errors) {
    binding_names(flow, errors);
    for problem in flow.with_definition(|definition| definition.problems()) {
        if is_of_names(&problem.kind) {
            errors.at(place(flow, &problem), of_names(flow, problem));
        }
    }
    for problem in flow.with_functions(|definition| definition.problems()) {
        match &problem.kind {
            kind if is_of_names(kind) => {}
            // Said of the `impl`, which has no steps.
            ProblemKind::StepQueuesWithoutSteps
            // Said with the key underlined; and these are only found with the feature `shape`,
            // which other crates may turn on.
            | ProblemKind::Condition(
                ConditionProblem::NotADependency { .. }
                | ConditionProblem::NotJson { .. }
                | ConditionProblem::NotAnObject { .. }
                | ConditionProblem::HoldsNul
                | ConditionProblem::InexactNumber { .. },
            ) => {}
            _ => errors.at(place(flow, &problem), problem),
        }
    }
}

/// Returns whether a problem is about slugs, or names of queues that are made of them. All others
/// are about the graph.
fn is_of_names(kind: &ProblemKind) -> bool {
    matches!(
        kind,
        ProblemKind::Slug(_)
            | ProblemKind::BindingName
            | ProblemKind::DuplicateStepSlug { .. }
            | ProblemKind::DefaultQueueNameTooLong { .. }
            | ProblemKind::FlowQueueNameTooLong { .. }
            | ProblemKind::StepQueueNameTooLong { .. }
    )
}

fn of_names(flow: &Flow<'_>, mut problem: Problem) -> String {
    let Some(index) = problem.step() else {
        return if flow.args.slug.is_none() {
            format!("{problem}\n\nhelp: the slug is the name of the type in snake case")
        } else {
            problem.to_string()
        };
    };
    let step = &flow.steps[flow.order[index]];
    match problem.kind {
        ProblemKind::Slug(slug) => format!(
            "the slug of step `{}` {}; set another with `slug = \"..\"`",
            step.name,
            slug.describe(&step.slug)
        ),
        ProblemKind::DuplicateStepSlug { first, .. } => format!(
            "steps `{}` and `{}` would have one slug, `{}`; slugs must differ in more than case, because queue names are lower case; set \
             another with `slug = \"..\"`",
            flow.steps[flow.order[first]].name, step.name, step.slug
        ),
        _ => {
            // By its function, as it stands there.
            problem.subject = Subject::Step {
                index,
                slug: step.name.clone(),
            };
            problem.to_string()
        }
    }
}

/// The definition knows slugs; parameters are bound by functions' names.
fn binding_names(flow: &Flow<'_>, errors: &mut Errors) {
    for step in flow.steps.iter().filter(|step| step.slug != step.name) {
        if BINDING_NAMES.contains(&step.name.as_str()) {
            errors.at(
                step.ident.span(),
                format!(
                    "a step can't be named `{}`: parameters of that name have a meaning of their own; rename the function",
                    step.name
                ),
            );
        }
    }
}

fn place(flow: &Flow<'_>, problem: &Problem) -> Span {
    let Some(step) = problem.step().map(|index| &flow.steps[flow.order[index]]) else {
        return flow.slug_span();
    };
    let pattern = |key| {
        step.args
            .key(key)
            .map_or_else(|| step.slug_span(), Ident::span)
    };
    match problem.part {
        Part::Slug | Part::QueueName | Part::QueueMode => step.slug_span(),
        Part::Dependency(position) => mention(step, position).span(),
        Part::MapSource | Part::Dependencies => mention(step, 0).span(),
        Part::ElementFailure => pattern("on_element_failure"),
        Part::Required => pattern("if"),
        Part::Forbidden => pattern("if_not"),
        Part::WhenUnmet => pattern("when_unmet"),
        Part::WhenExhausted => pattern("when_exhausted"),
        Part::RunsOn => pattern("on"),
        Part::Option(name) => pattern(name.as_str()),
    }
}

/// The name at a position of the definition's `depends_on`, which holds the edges that lead to a
/// step.
fn mention(step: &Step<'_>, position: usize) -> Ident {
    let mut edges = step.edges.iter().filter(|edge| edge.step().is_some());
    edges
        .nth(position)
        .map_or_else(|| step.ident.clone(), |edge: &Edge| edge.at.clone())
}
