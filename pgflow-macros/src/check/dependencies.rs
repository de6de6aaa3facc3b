//! Names in `depends_on` and `map` that lead nowhere.

use crate::{
    errors::Errors,
    model::{Edge, Flow, Link},
    names::quoted,
};

pub(super) fn check(flow: &Flow<'_>, index: usize, errors: &mut Errors) {
    let step = &flow.steps[index];
    if let (Some(source), Some(key)) = (&step.args.map, step.args.key("depends_on")) {
        errors.at(
            key.span(),
            format!(
                "a map step depends on the step it maps over, and on nothing else; remove `depends_on` or `map = {source}`"
            ),
        );
    }
    for edge in &step.edges {
        match edge.link {
            Link::Unknown { similar } => unknown(flow, index, edge, similar, errors),
            Link::NotAStep => errors.at(
                edge.at.span(),
                format!(
                    "`{}` is a function here, but not a step\n\nhelp: add `#[step]` above it",
                    edge.at
                ),
            ),
            Link::Step(_) | Link::Itself(_) | Link::Unreadable => {}
        }
    }
}

fn unknown(
    flow: &Flow<'_>,
    index: usize,
    edge: &Edge,
    similar: Option<usize>,
    errors: &mut Errors,
) {
    let others: Vec<&str> = (flow.steps.iter().enumerate())
        .filter(|(other, _)| *other != index)
        .map(|(_, step)| step.name.as_str())
        .collect();
    let help = match similar {
        _ if edge.at == "input" => {
            "every step can take the flow's input as a parameter `input`; it is not a dependency"
                .to_owned()
        }
        Some(similar) => format!(
            "a step with a similar name exists: `{}`",
            flow.steps[similar].name
        ),
        None if others.is_empty() => "the flow has no other step".to_owned(),
        None => format!("the other steps are: {}", quoted(others)),
    };
    errors.at(
        edge.at.span(),
        format!(
            "there is no step `{}` in this flow\n\nhelp: {help}",
            edge.at
        ),
    );
}
