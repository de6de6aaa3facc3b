//! A part stands somewhere else.

use crate::{
    facts::{dependents, is_skippable, takers},
    mutation::{Edit, Mutation},
    source::{Source, Step},
};

pub fn all(source: &Source) -> Vec<Mutation> {
    let mut edits = Vec::new();
    for step in &source.steps {
        edits.extend(out_of_the_impl(source, step));
        edits.extend(to_a_helper(source, step));
        edits.extend(from(source, step));
        edits.extend(to_the_flow(source, step));
        edits.extend(inside(source, step));
    }
    for other in &source.others {
        for at in [source.body.start, source.body.end] {
            let edit = vec![
                Edit::remove(other),
                Edit::insert(at, format!("\n    {}\n", source.at(other))),
            ];
            edits.push(Mutation::compiles("move: an item that is no step", edit));
        }
    }
    edits.extend(the_attribute(source));
    edits
}

fn out_of_the_impl(source: &Source, step: &Step) -> Option<Mutation> {
    let text = source.at(&step.whole);
    if text.contains("Self") || !dependents(source, step).is_empty() {
        return None;
    }
    let at = source.whole_impl.end;
    let edit = vec![
        Edit::remove(&step.whole),
        Edit::insert(at, format!("\n\n{text}")),
    ];
    Some(Mutation::fails("move: a step out of the `impl`", edit).naming([&*step.name.text, "step"]))
}

/// The helper can't be a step, and the step has no dependents: one error.
fn to_a_helper(source: &Source, step: &Step) -> Vec<Mutation> {
    let has_from = step.params.iter().any(|param| param.from.is_some());
    if has_from || !dependents(source, step).is_empty() {
        return Vec::new();
    }
    let functions = source
        .others
        .iter()
        .filter(|other| source.at(other).starts_with("const"));
    functions
        .map(|other| {
            let edit = vec![
                Edit::remove(&step.attr),
                Edit::insert(other.start, format!("{}\n    ", source.at(&step.attr))),
            ];
            Mutation::fails("move: `#[step]` to a constant", edit)
        })
        .collect()
}

fn from(source: &Source, step: &Step) -> Vec<Mutation> {
    let mut edits = Vec::new();
    for (attr, name) in step.params.iter().filter_map(|param| param.from.as_ref()) {
        let edit = vec![
            Edit::remove(attr),
            Edit::insert(step.async_token.start, format!("{} ", source.at(attr))),
        ];
        let mutation = Mutation::fails("move: a `from` to the function", edit);
        edits.push(mutation.at_most(2).naming([&*name.text]));
    }
    edits
}

/// A mode that is of no account to others; an option may stand there, too.
fn to_the_flow(source: &Source, step: &Step) -> Vec<Mutation> {
    let mut edits = Vec::new();
    for arg in &step.args {
        let key = arg.key.text.as_str();
        let edit = || {
            let text = format!("{},\n    ", source.at(&arg.whole));
            vec![
                Edit::remove_element(source, &arg.whole),
                Edit::insert(source.args[0].whole.start, text),
            ]
        };
        match key {
            "start_delay" => edits
                .push(Mutation::fails("move: an argument to the flow", edit()).hinting("#[step]")),
            "when_exhausted" if takers(source, step).is_empty() || !is_skippable(step) => {
                edits.push(
                    Mutation::fails("move: an argument to the flow", edit()).hinting("#[step]"),
                );
            }
            "max_attempts" | "base_delay" | "timeout" if source.arg(key).is_none() => {
                edits.push(Mutation::compiles("move: an option to the flow", edit()));
            }
            _ => {}
        }
    }
    edits
}

/// The attribute of a step into its signature, and a parameter out of it.
fn inside(source: &Source, step: &Step) -> Vec<Mutation> {
    let mut edits = Vec::new();
    if dependents(source, step).is_empty() && step.params.iter().all(|param| param.from.is_none()) {
        let attr = source.at(&step.attr);
        let edit = vec![
            Edit::remove(&step.attr),
            Edit::insert(
                step.body.start + 1,
                format!("\n        {attr}\n        fn inner() {{}}\n"),
            ),
        ];
        edits.push(Mutation::fails("move: `#[step]` into the body", edit).naming(["step"]));
    }
    edits
}

/// `#[flow]` to the type: every step then says that it is alone.
fn the_attribute(source: &Source) -> Vec<Mutation> {
    let text = source.at(&source.attr);
    let of_type = source
        .types
        .iter()
        .find(|ty| ty.name.text == source.self_ty.text)
        .expect("the flow's type");
    let steps = source.steps.len();
    let names: Vec<&str> = vec!["step", "from"];
    let moved = vec![
        Edit::remove(&source.attr),
        Edit::insert(of_type.whole.start, format!("{text}\n")),
    ];
    vec![
        Mutation::fails("move: `#[flow]` to the type", moved)
            .at_most(1 + steps)
            .naming(names)
            .of_the_whole(),
        Mutation::fails(
            "add: `#[flow]` again",
            vec![Edit::insert(source.attr.start, format!("{text}\n"))],
        )
        .of_the_whole(),
    ]
}
