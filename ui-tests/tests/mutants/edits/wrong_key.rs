//! Keys of arguments, and attributes, that there are not.

use crate::{
    args::Arg,
    facts::{FLOW_KEYS, STEP_KEYS, taken},
    mutation::{Edit, Mutation, misspelt},
    source::Source,
};

pub fn all(source: &Source, seed: u64) -> Vec<Mutation> {
    let of_flow = source.args.iter().flat_map(|arg| key(source, arg, seed));
    let of_steps =
        (source.steps.iter().flat_map(|step| &step.args)).flat_map(|arg| key(source, arg, seed));
    let mut edits: Vec<Mutation> = of_flow.chain(of_steps).collect();
    edits.extend(attributes(source, seed));
    edits.extend(of_the_other(source));
    edits
}

fn key(source: &Source, arg: &Arg, seed: u64) -> Vec<Mutation> {
    let key = &arg.key.text;
    let wrong = |kind, text: &str| Mutation::fails(kind, vec![Edit::new(&arg.key.at, text)]);
    let typo = misspelt(key, &arg.key.at, seed, &taken(source));
    let mut edits = vec![wrong("misspell: a key", &typo).hinting(format!("`{key}`"))];
    if key.contains('_') {
        let hyphens = key.replace('_', "-");
        edits.push(wrong("misspell: a key, with hyphens", &hyphens).hinting(format!("`{key}`")));
        let joined = key.replace('_', "");
        edits.push(wrong("misspell: a key, joined", &joined).hinting(format!("`{key}`")));
        let camel = camel(key);
        edits.push(wrong("misspell: a key, in camel case", &camel).hinting(format!("`{key}`")));
    }
    let upper = key.to_uppercase();
    edits.push(wrong("misspell: a key, in capitals", &upper).hinting(format!("`{key}`")));
    edits
}

fn camel(key: &str) -> String {
    let mut words = key.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |name, word| {
        let (head, tail) = word.split_at(1);
        name + &head.to_uppercase() + tail
    })
}

fn attributes(source: &Source, seed: u64) -> Vec<Mutation> {
    let mut edits = Vec::new();
    for step in &source.steps {
        let at = step.attr.start + 2..step.attr.start + 2 + "step".len();
        let typo = misspelt("step", &at, seed, &["step"]);
        let edit = vec![Edit::new(&at, &*typo)];
        edits.push(Mutation::fails("misspell: `#[step]`", edit).naming([&*step.name.text]));
        for (attr, _) in step.params.iter().filter_map(|param| param.from.as_ref()) {
            let at = attr.start + 2..attr.start + 2 + "from".len();
            let typo = misspelt("from", &at, seed, &["from"]);
            let edit = vec![Edit::new(&at, typo)];
            edits.push(Mutation::fails("misspell: `#[from]`", edit));
        }
    }
    edits
}

/// An argument that only the other attribute has.
fn of_the_other(source: &Source) -> Vec<Mutation> {
    let mut edits = Vec::new();
    let example = |key: &str| match key {
        "with_step_queues" => String::new(),
        "input" | "state" | "step_enum" | "output" => " = Whatever".to_owned(),
        "output_derive" => " = [Debug]".to_owned(),
        "crate" => " = ::pgflow".to_owned(),
        "depends_on" => format!(" = [{}]", source.steps[0].name.text),
        "map" => format!(" = {}", source.steps[0].name.text),
        "start_delay" => " = \"5s\"".to_owned(),
        "if" | "if_not" => " = { plan: 1 }".to_owned(),
        _ => " = \"skip\"".to_owned(),
    };
    let only = |keys: &[&'static str], others: &[&str]| -> Vec<&'static str> {
        let only = keys.iter().filter(|key| !others.contains(key));
        only.copied().collect()
    };
    for key in only(&STEP_KEYS, &FLOW_KEYS) {
        let at = source.args[0].whole.start;
        let text = format!("{key}{},\n    ", example(key));
        let edit = vec![Edit::insert(at, text)];
        edits.push(
            Mutation::fails("move: an argument of the step to the flow", edit).hinting("#[step]"),
        );
    }
    for step in source.steps.iter().filter(|step| !step.args.is_empty()) {
        for key in only(&FLOW_KEYS, &STEP_KEYS) {
            let at = step.args[0].whole.start;
            let text = format!("{key}{},\n        ", example(key));
            let edit = vec![Edit::insert(at, text)];
            edits.push(
                Mutation::fails("move: an argument of the flow to a step", edit).hinting("#[flow"),
            );
        }
    }
    edits
}
