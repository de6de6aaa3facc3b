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
        written(flow, step, &source.written, "input", errors);
    }
    for edge in &step.edges {
        if let (Some(tokens), Some(_)) = (&edge.written, edge.step()) {
            written(flow, step, tokens, &edge.at.to_string(), errors);
        }
        let name = &edge.at;
        let message = match edge.link {
            Link::Unknown { similar } => unknown(flow, index, edge, similar),
            Link::NotAStep => format!(
                "`{name}` is a function here, but not a step\n\nhelp: {}",
                taken(flow, step, edge).unwrap_or_else(|| "add `#[step]` above it".to_owned())
            ),
            Link::Constant => format!(
                "`{name}` is a constant here, not a step\n\nhelp: {}",
                taken(flow, step, edge).unwrap_or_else(|| other_steps(flow, index))
            ),
            Link::Outside => {
                let written = edge.written.clone().unwrap_or_default();
                let message = format!(
                    "`{}` is not a step of this flow; a step can depend only on steps of its own flow\n\nhelp: {}",
                    show(&written),
                    taken(flow, step, edge).unwrap_or_else(|| other_steps(flow, index))
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
fn written(
    flow: &Flow<'_>,
    step: &Step<'_>,
    written: &TokenStream,
    name: &str,
    errors: &mut Errors,
) {
    let text = show(written);
    let unquoted = text.trim_matches('"');
    let is_slug_of =
        |step: &Step<'_>| step.name == name && step.slug == unquoted && name != unquoted;
    let message = if flow.steps.iter().any(is_slug_of) {
        format!("`{unquoted}` is the slug of step `{name}`; write the function's name: `{name}`")
    } else if unquoted == name && unquoted.len() < text.len() {
        format!("steps are named without quotes: write `{name}`")
    } else if step.map.is_some() {
        format!("`map` takes the name of one step: write `map = {name}`")
    } else {
        format!("a step is named by its function: write `{name}` instead of `{text}`")
    };
    errors.on(written, message);
}

fn unknown(flow: &Flow<'_>, index: usize, edge: &Edge, similar: Option<usize>) -> String {
    let (name, step) = (&edge.at, &flow.steps[index]);
    let word = name.unraw().to_string();
    let value = match word.as_str() {
        "input" => Some("the flow's input"),
        "state" => Some("the flow's state"),
        "ctx" => Some("the context of an attempt"),
        "item" => Some("an element of a list"),
        _ => None,
    };
    let problem = match value {
        Some(value) => format!("`{name}` is {value}, not a step"),
        None => format!("there is no step `{name}` in this flow"),
    };
    let help = match (value, similar) {
        _ if edge.taken.is_some() => taken(flow, step, edge).unwrap_or_default(),
        (Some(_), _) if word == "item" => {
            "a map step takes an element as a parameter `item`: name the list, as in `map = input`"
                .to_owned()
        }
        (Some(_), _) if step.edges.len() == 1 => {
            format!("remove `depends_on`: the parameter `{name}` is enough")
        }
        (Some(_), _) => format!("remove it from the list: the parameter `{name}` is enough"),
        (None, Some(similar)) => format!(
            "a step with a similar name exists: `{}`",
            flow.steps[similar].name
        ),
        (None, None) if step.map.is_some() && nearest(&word, ["input"]).is_some() => {
            "did you mean `input`, the flow's input?".to_owned()
        }
        (None, None) => other_steps(flow, index),
    };
    format!("{problem}\n\nhelp: {help}")
}

/// The step that only a parameter names.
fn taken(flow: &Flow<'_>, step: &Step<'_>, edge: &Edge) -> Option<String> {
    let taken = &flow.steps[edge.taken?].name;
    Some(format!(
        "`{}` takes `{taken}`: write `{taken}` here",
        step.name
    ))
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
