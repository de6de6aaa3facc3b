//! Parameters that can't be filled.

use pgflow_definition::slug::BINDING_NAMES;
use proc_macro2::Ident;
use syn::Type;

use crate::{
    errors::Errors,
    model::{Binding, Edge, Flow, Mistake, Param, Step, types::show},
    names::{nearest, quoted},
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
        Mistake::MutableReference(tokens) => {
            return errors.on(
                tokens,
                "a step's parameters can't be mutable references; take the value itself, as in `mut parse: Vec<Package>`",
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
                "`#[from(..)]` takes the name of a dependency, such as `#[from(parse)]`",
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
        Mistake::Unknown => unknown(flow, step, key),
        Mistake::Twice => format!(
            "`{key}` is taken twice by `{name}`; each value is taken once; remove one of the parameters"
        ),
        Mistake::ItemOfSingleStep => format!(
            "`item` is one element of a list, but `{name}` is not a map step\n\nhelp: add `map = step` to its `#[step(..)]`, or take the \
             whole output by naming the step"
        ),
        Mistake::WholeListOfMapStep => format!(
            "`{name}` maps over `{key}`, so it gets one element at a time: name the parameter `item`"
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

fn unknown(flow: &Flow<'_>, step: &Step<'_>, key: &str) -> String {
    let name = &step.name;
    if key != name && flow.steps.iter().any(|other| other.name == key) {
        let help = match (&step.args.map, &step.args.depends_on) {
            (Some(source), _) => format!(
                "`{name}` maps over `{source}`; a map step can take `item`, `input`, `ctx` and `state`"
            ),
            (None, Some(listed)) => {
                let listed: Vec<String> = listed.iter().map(Ident::to_string).collect();
                format!("add it: `depends_on = [{}, {key}]`", listed.join(", "))
            }
            (None, None) => format!("add it: `#[step(depends_on = [{key}])]`"),
        };
        return format!("step `{name}` doesn't depend on `{key}`\n\nhelp: {help}");
    }
    let help = match meant(flow, step, key) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!(
            "a parameter of `{name}` can be: {}; rename one with `#[from(..)]`",
            quoted(candidates(flow, step))
        ),
    };
    format!("`{key}` is not something step `{name}` can take\n\nhelp: {help}")
}

/// A name that is near, or another word for one.
fn meant<'m>(flow: &'m Flow<'_>, step: &'m Step<'_>, key: &str) -> Option<&'m str> {
    const OTHER_WORDS: [(&str, &str); 4] = [
        ("context", "ctx"),
        ("app", "state"),
        ("app_state", "state"),
        ("element", "item"),
    ];
    let names = dependencies(flow, step).chain(BINDING_NAMES);
    if let Some(name) = nearest(key, names) {
        return Some(name);
    }
    let word = nearest(key, OTHER_WORDS.map(|(word, _)| word))?;
    let (_, name) = OTHER_WORDS.into_iter().find(|(other, _)| *other == word)?;
    (name != "item" || step.map.is_some()).then_some(name)
}

fn candidates<'m>(flow: &'m Flow<'_>, step: &'m Step<'_>) -> Vec<&'m str> {
    let words = BINDING_NAMES
        .into_iter()
        .filter(|name| *name != "item" || step.map.is_some());
    dependencies(flow, step).chain(words).collect()
}

/// The dependencies that a parameter can name: a map step gets elements of its one dependency instead.
fn dependencies<'m>(flow: &'m Flow<'_>, step: &'m Step<'_>) -> impl Iterator<Item = &'m str> {
    let edges = step.edges.iter().filter(|_| step.map.is_none());
    edges
        .filter_map(Edge::meant)
        .map(|dependency| flow.steps[dependency].name.as_str())
}
