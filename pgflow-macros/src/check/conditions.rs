//! `if`, `if_not` and what follows from them.

use crate::{
    errors::Errors,
    model::{Edge, Flow, Step},
    names::did_you_mean,
    parse::Pattern,
};

pub(super) fn check(flow: &Flow<'_>, step: &Step<'_>, errors: &mut Errors) {
    if let (Some(key), false) = (step.args.key("when_unmet"), step.is_conditional()) {
        errors.at(
            key.span(),
            "`when_unmet` needs a condition: add `if = { .. }` or `if_not = { .. }`, or remove it",
        );
    }
    contradiction(step, errors);
    // Without dependencies the condition is about the flow's input, whose fields the macro does not
    // know.
    if step.edges.is_empty() || step.edges.iter().any(|edge| edge.step().is_none()) {
        return;
    }
    let dependencies: Vec<&str> = step
        .edges
        .iter()
        .filter_map(Edge::step)
        .map(|dependency| flow.steps[dependency].name.as_str())
        .collect();
    for pattern in [&step.args.required, &step.args.forbidden]
        .into_iter()
        .flatten()
    {
        keys(step, pattern, &dependencies, errors);
    }
}

/// A condition that nothing can meet.
fn contradiction(step: &Step<'_>, errors: &mut Errors) {
    let (Some(required), Some(forbidden)) = (&step.args.required, &step.args.forbidden) else {
        return;
    };
    let is_readable = |pattern: &Pattern| !pattern.entries.is_empty();
    let json = |pattern: &Pattern| pattern.json(|key| key);
    if is_readable(required) && is_readable(forbidden) && json(required).contains(&json(forbidden))
    {
        errors.at(
            forbidden.argument.span(),
            format!(
                "`{}` would never run: whatever contains the object of `if` contains that of `if_not` too; change or remove one of them",
                step.name
            ),
        );
    }
}

fn keys(step: &Step<'_>, pattern: &Pattern, dependencies: &[&str], errors: &mut Errors) {
    let effect = if pattern.argument == "if" {
        "could never hold"
    } else {
        "would always hold"
    };
    for entry in &pattern.entries {
        let key = &entry.key;
        if dependencies.contains(&key.as_str()) {
            continue;
        }
        let help = did_you_mean(key, dependencies.iter().copied()).unwrap_or_else(|| {
            let subject: Vec<String> = dependencies
                .iter()
                .map(|name| format!("{name}: .."))
                .collect();
            format!(
                "the condition of a step with dependencies is compared with their outputs, {{ {} }}; only one of a root step is compared \
                 with the flow's input: to look at a field of the input here, let a root step return it and depend on that",
                subject.join(", ")
            )
        });
        errors.at(
            entry.at,
            format!(
                "`{key}` is not a dependency of `{}`, so this condition {effect}\n\nhelp: {help}",
                step.name
            ),
        );
    }
}
