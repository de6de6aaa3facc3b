//! The `impl` block, and what is missing in it.

use proc_macro2::{Span, TokenStream};
use quote::quote;

use crate::{
    errors::Errors,
    model::{Flow, Step, types::show},
    parse::{FlowImpl, Item, UnreadableKind},
};

const GENERIC: &str =
    "a flow can't be generic: its slug names one definition in the database; write the types out";

pub(super) fn check(flow: &Flow<'_>, source: &FlowImpl, errors: &mut Errors) {
    generics(source, errors);
    if !flow.args.has("input") {
        errors.at(
            Span::call_site(),
            "`#[flow]` needs the type of the flow's input: `#[flow(input = MyInput)]`",
        );
    }
    names(flow, errors);
    steps(flow, source, errors);
}

/// Functions by which a flow is started: `CrateAudit::start(..)`. A function of the type would come
/// before them.
const STARTS: [&str; 4] = [
    "start",
    "start_with_id",
    "start_many",
    "start_many_with_ids",
];

/// The types that stand beside the flow's.
fn names(flow: &Flow<'_>, errors: &mut Errors) {
    let ty = &flow.ident;
    if let Some(name) = &flow.clash.step_enum {
        errors.at(
            name.span(),
            format!(
                "`{name}` is the flow itself, and can't be the enum of its steps too; another name was expected; write for example \
                 `step_enum = {}`",
                flow.step_enum
            ),
        );
    }
    if let Some(name) = &flow.clash.output {
        let what = if name == ty {
            "the flow itself"
        } else {
            "the enum of the flow's steps"
        };
        errors.at(
            name.span(),
            format!(
                "`{name}` is {what}, and can't be the output of the flow too; another name was expected; write for example \
                 `output = {}`, or leave it out",
                flow.output
            ),
        );
    }
}

/// Returns whether there can be a flow of this `impl` at all. Without a type of its own there is
/// nothing to implement the traits for.
pub(crate) fn is_possible(source: &FlowImpl, errors: &mut Errors) -> bool {
    let own = source.own_type().map(|segment| &segment.ident);
    if let (Some((of_trait, token)), Some(own)) = (&source.of_trait, own) {
        errors.on(
            quote!(#of_trait #token),
            format!(
                "`#[flow]` goes on an inherent `impl`, not on the implementation of a trait; write `impl {own} {{ .. }}` for the steps, and \
                 leave `{} for` out",
                show(of_trait)
            ),
        );
        return source.steps().next().is_some();
    }
    if source.own_type().is_none() {
        errors.on(
            &source.self_ty,
            "`#[flow]` goes on the `impl` of a type of its own, such as `impl MyFlow { .. }`",
        );
        return false;
    }
    true
}

fn generics(source: &FlowImpl, errors: &mut Errors) {
    if !source.generics.params.is_empty() {
        errors.on(&source.generics, GENERIC);
    } else if let Some(clause) = &source.generics.where_clause {
        errors.on(clause, GENERIC);
    } else if let Some(segment) = source.own_type().filter(|it| !it.arguments.is_none()) {
        errors.on(&segment.arguments, GENERIC);
    }
}

fn steps(flow: &Flow<'_>, source: &FlowImpl, errors: &mut Errors) {
    let mut has_unreadable = false;
    for item in &source.items {
        let Item::Unreadable { tokens, kind, .. } = item else {
            continue;
        };
        has_unreadable = true;
        if *kind == UnreadableKind::NotAFunction {
            let first: TokenStream = tokens.clone().into_iter().take(1).collect();
            errors.on(
                first,
                "`#[step]` marks an `async fn`, which this is not; remove the attribute",
            );
        }
    }
    if flow.steps.is_empty() && !has_unreadable {
        if let Some(written) = source.macros_for_steps().next() {
            let Item::Other(written) = written else {
                return;
            };
            errors.on(
                &written.tokens,
                "`#[flow]` reads the steps before this macro is expanded, and finds none beside it; write the steps themselves here, and call the \
                 macro in their bodies",
            );
            return;
        }
        errors.at(
            Span::call_site(),
            "this flow has no steps; mark its functions with `#[step]`",
        );
    }
    if !flow.steps.is_empty() && !has_unreadable && flow.steps.iter().all(Step::is_end_step) {
        errors.at(
            Span::call_site(),
            "this flow has only steps that run when the run has ended; add a step without `on`, which is part of the run",
        );
    }
    for step in &flow.steps {
        if STARTS.contains(&step.name.as_str()) {
            errors.at(
                step.ident.span(),
                format!(
                    "a step can't be named `{0}`: `{1}::{0}` starts runs of the flow, and would be this function; rename it, and keep its name \
                     in the database with `slug = \"{2}\"`",
                    step.name, flow.ident, step.slug
                ),
            );
        }
        let Some(first) = step.same_variant.map(|first| &flow.steps[first]) else {
            continue;
        };
        // Slugs that differ in case only are a mistake of the definition.
        if !first.slug.eq_ignore_ascii_case(&step.slug) {
            errors.at(
                step.ident.span(),
                format!(
                    "steps `{}` and `{}` would both be called `{}::{}`; rename one, and keep its name in the database with `slug = \"..\"`",
                    first.name, step.name, flow.step_enum, step.variant
                ),
            );
        }
    }
}
