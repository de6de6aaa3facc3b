//! Parameters that can't be filled.

use syn::Type;

use super::unknown_param::{self, candidates};
use crate::{
    errors::Errors,
    model::{
        Binding, Flow, Mistake, Param, Step,
        types::{bare, owned, show, sized},
    },
    names::quoted,
};

pub(super) fn check(flow: &Flow<'_>, step: &Step<'_>, errors: &mut Errors) {
    for param in &step.params {
        if let Binding::Poisoned(mistake) = &param.binding {
            report(flow, step, param, mistake, errors);
        }
    }
}

fn report(flow: &Flow<'_>, step: &Step<'_>, param: &Param, mistake: &Mistake, errors: &mut Errors) {
    let (name, key) = (&step.name, &param.key);
    let message = match mistake {
        Mistake::Elsewhere => return,
        Mistake::ImplTrait(tokens) => {
            return errors.on(
                tokens,
                "a step's parameters need concrete types: their values are read back from JSON; name the type",
            );
        }
        Mistake::MutableReference(tokens) => return errors.on(tokens, mutable(param)),
        Mistake::TraitObject(tokens) => {
            return errors.on(
                tokens,
                "a step's parameters need concrete types: their values are read back from JSON; name the type in place of the trait",
            );
        }
        Mistake::Unsized(ty) => {
            return errors.on(
                ty,
                format!(
                    "a step's parameters need types of a known size; write {}",
                    by_reference_or_value(ty)
                ),
            );
        }
        Mistake::Lifetime(tokens) => {
            return errors.on(
                tokens,
                "a step borrows its parameters for one attempt only; write `&T` without a lifetime",
            );
        }
        Mistake::MalformedFrom(tokens) => {
            return errors.on(
                tokens,
                format!(
                    "`#[from(..)]` takes the name of a value; write it in the parentheses: {}",
                    quoted(candidates(flow, step))
                ),
            );
        }
        Mistake::Pattern(tokens) => {
            let names = candidates(flow, step);
            return errors.on(
                tokens,
                format!(
                    "a parameter of a step is bound by its name; say what this pattern is with `#[from(..)]`: {}",
                    quoted(names)
                ),
            );
        }
        Mistake::Unknown => unknown_param::message(flow, step, param),
        Mistake::Twice => format!(
            "`{key}` is taken twice by `{name}`; each value is taken once; remove one of the parameters"
        ),
        Mistake::ItemOfSingleStep => format!(
            "`item` is one element of a list, but `{name}` is not a map step\n\nhelp: add `map = step` to its `#[step(..)]`, or take the \
             whole output by naming the step"
        ),
        Mistake::WholeListOfMapStep if takes_item(step) => format!(
            "`{name}` maps over `{key}`, so it gets one element at a time, which it takes as `item`; the whole list can't be taken beside \
             it\n\nhelp: remove this parameter, and let `{key}` return elements that hold all that `{name}` needs"
        ),
        Mistake::WholeListOfMapStep => format!(
            "`{name}` maps over `{key}`, so it gets one element at a time: name the parameter `item`"
        ),
        Mistake::SkippableOption(dependency) => {
            return errors.on(&param.ty, skippable_option(&flow.steps[*dependency]));
        }
        Mistake::EndOfUnendedRun => format!(
            "`{key}` is the end of the run, and `{name}` is part of it\n\nhelp: add `on = end` or `on = failure` to its `#[step(..)]`, and it \
             runs when the run has ended"
        ),
        Mistake::ItemOfEndStep => format!(
            "`item` is one element of a list, but `{name}` runs once, when the run has ended\n\nhelp: take the outputs of all completed steps \
             as `end: &RunEnd`"
        ),
        Mistake::EndAsInput => format!(
            "`input` is the flow's input, and `{name}` gets the end of the run beside it\n\nhelp: name the parameter `end`, as in \
             `end: &RunEnd`"
        ),
        Mistake::NoState => {
            let ty = match &param.ty {
                Type::Reference(reference) => show(&reference.elem),
                ty => show(ty),
            };
            format!("this flow has no state\n\nhelp: add `state = {ty}` to its `#[flow(..)]`")
        }
    };
    if let Some(name) = &param.name {
        errors.at(name.span(), message);
    }
}

/// The output of a step that may be skipped, and is an `Option` itself.
fn skippable_option(dependency: &Step<'_>) -> String {
    let ok = dependency.output.as_ref().map(|output| show(&output.ok));
    let ok = ok.unwrap_or_default();
    format!(
        "`{0}` returns `{ok}` and may be skipped; a step that was skipped and one that returned `None` are not the same\n\nhelp: take `{0}` \
         as `Option<{ok}>`",
        dependency.name
    )
}

/// Instead of a type without a size.
fn by_reference_or_value(ty: &Type) -> String {
    match bare(ty) {
        Type::TraitObject(_) => "a type in place of the trait".to_owned(),
        ty => format!("`&{}` or `{}`", show(ty), show(&sized(ty))),
    }
}

/// Instead of a `&mut T`.
fn mutable(param: &Param) -> String {
    let Type::Reference(reference) = bare(&param.ty) else {
        unreachable!("a mutable reference is a reference")
    };
    let ty = show(&reference.elem);
    match param.key.as_str() {
        "state" => format!(
            "the state is shared by all tasks of a worker, so no step can have it for itself; take `&{ty}`, and keep what changes in a \
             `Mutex` or an atomic type inside of it"
        ),
        "ctx" => format!("a step only looks at its context; write `ctx: &{ty}`"),
        _ => {
            let value = show(&owned(&syn::parse_quote!(&#reference)));
            let name = param
                .name
                .as_ref()
                .map_or_else(|| "value".to_owned(), ToString::to_string);
            format!(
                "a step's parameters can't be mutable references; take the value itself, as in `mut {name}: {value}`"
            )
        }
    }
}

fn takes_item(step: &Step<'_>) -> bool {
    step.params.iter().any(|param| param.key == "item")
}
