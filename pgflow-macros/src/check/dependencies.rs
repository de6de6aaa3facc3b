//! Names in `depends_on` and `map` that lead nowhere.

use proc_macro2::TokenStream;
use syn::ext::IdentExt;

use crate::{
    errors::Errors,
    model::{Edge, Flow, Link, MapOver, Step, types::show},
    names::{nearest, quoted},
};

pub(super) fn check(flow: &Flow<'_>, index: usize, errors: &mut Errors) {
    let step = &flow.steps[index];
    if let (Some(source), Some(key)) = (&step.args.map, step.args.key("depends_on")) {
        let source = &source.name;
        errors.at(
            key.span(),
            format!(
                "a map step depends on the step it maps over, and on nothing else; remove `depends_on` or `map = {source}`"
            ),
        );
    }
    if let (Some([]), Some(key)) = (step.args.depends_on.as_deref(), step.args.key("depends_on")) {
        errors.at(key.span(), no_step(flow, step));
    }
    if let (Some(source), Some(MapOver::Input(_))) = (&step.args.map, step.map)
        && !source.is_settled
    {
        written(step, &source.written, "input", errors);
    }
    for edge in &step.edges {
        if let (Some(tokens), Some(_)) = (&edge.written, edge.step()) {
            written(step, tokens, &edge.at.to_string(), errors);
        }
        let name = &edge.at;
        let message = match edge.link {
            Link::Unknown { similar } => unknown(flow, index, edge, similar),
            Link::NotAStep => format!(
                "`{name}` is a function here, but not a step\n\nhelp: add `#[step]` above it"
            ),
            Link::Constant => format!(
                "`{name}` is a constant here, and a step was expected\n\nhelp: {}",
                other_steps(flow, index)
            ),
            Link::Outside => {
                let written = edge.written.clone().unwrap_or_default();
                let message = format!(
                    "`{}` is outside of this flow, and a step depends on steps of its own flow only\n\nhelp: {}",
                    show(&written),
                    other_steps(flow, index)
                );
                errors.on(written, message);
                continue;
            }
            Link::Step(_) | Link::Itself(_) | Link::Unreadable => continue,
        };
        errors.at(name.span(), message);
    }
}

/// A list that is empty.
fn no_step(flow: &Flow<'_>, step: &Step<'_>) -> String {
    let is_other =
        |name: &String| *name != step.name && flow.steps.iter().any(|other| other.name == *name);
    let taken: Vec<String> = step.source.taken_names().filter(is_other).collect();
    let help = if taken.is_empty() {
        "leave `depends_on` out for a step without dependencies".to_owned()
    } else {
        format!(
            "write `depends_on = [{}]`, which is what `{}` takes",
            taken.join(", "),
            step.name
        )
    };
    format!("`depends_on = []` lists no step; {help}")
}

/// A step that is not named by its function.
fn written(step: &Step<'_>, written: &TokenStream, name: &str, errors: &mut Errors) {
    let message = if step.map.is_some() {
        format!("`map` takes the name of one step: write `map = {name}`")
    } else {
        format!(
            "steps are named by their function: write `{name}` instead of `{}`",
            show(written)
        )
    };
    errors.on(written, message);
}

fn unknown(flow: &Flow<'_>, index: usize, edge: &Edge, similar: Option<usize>) -> String {
    let (name, step) = (&edge.at, &flow.steps[index]);
    let help = match (name.unraw().to_string().as_str(), similar) {
        ("input", _) => {
            "every step can take the flow's input as a parameter `input`; it is not a dependency"
                .to_owned()
        }
        ("state", _) => {
            "every step can take the flow's state as a parameter `state`; it is not a dependency"
                .to_owned()
        }
        ("ctx", _) => {
            "every step can take its context as a parameter `ctx`; it is not a dependency".to_owned()
        }
        ("item", _) => "a map step takes an element of a list as a parameter `item`: name that list instead, as in `map = input`".to_owned(),
        (_, _) if edge.taken.is_some() => {
            let taken = edge.taken.map_or("", |taken| flow.steps[taken].name.as_str());
            format!(
                "`{}` takes `{taken}`, which is not listed: write that name here",
                step.name
            )
        }
        (_, Some(similar)) => format!(
            "a step with a similar name exists: `{}`",
            flow.steps[similar].name
        ),
        (word, None) if step.map.is_some() && nearest(word, ["input"]).is_some() => {
            "did you mean `input`, the flow's input?".to_owned()
        }
        (_, None) => other_steps(flow, index),
    };
    format!("there is no step `{name}` in this flow\n\nhelp: {help}")
}

fn other_steps(flow: &Flow<'_>, index: usize) -> String {
    let others: Vec<&str> = (flow.steps.iter().enumerate())
        .filter(|(other, _)| *other != index)
        .map(|(_, step)| step.name.as_str())
        .collect();
    if others.is_empty() {
        "the flow has no other step".to_owned()
    } else {
        format!("the other steps are: {}", quoted(others))
    }
}
