//! A name becomes another one.

use crate::{
    facts::{self, WORDS, dependents, taken, taken_by},
    mutation::{Edit, Mutation, misspelt},
    source::{Place, Source, Step, Word, unraw},
};

pub fn all(source: &Source, seed: u64) -> Vec<Mutation> {
    let mut edits = Vec::new();
    for step in &source.steps {
        for word in step.depends_on() {
            edits.extend(dependency(source, step, word, seed));
        }
        if let Some(word) = step.map() {
            edits.extend(map(source, step, word, seed));
        }
        edits.extend(params(source, step, seed));
        edits.extend(condition_keys(source, step, seed));
        edits.extend(function(source, step, seed));
    }
    edits.extend(types(source, seed));
    edits
}

fn typo(source: &Source, word: &Word, seed: u64) -> String {
    misspelt(&word.text, &word.at, seed, &taken(source))
}

fn dependency(source: &Source, step: &Step, word: &Word, seed: u64) -> Vec<Mutation> {
    let name = unraw(&word.text);
    let edit = |text: String| vec![Edit::new(&word.at, text)];
    let wrong = |kind, text: &str| Mutation::fails(kind, edit(text.to_owned()));
    let right = &word.text;
    let mut edits = vec![
        Mutation::fails("rename: a dependency", edit(typo(source, word, seed))).hinting(name),
        wrong("rename: a dependency to no step", "zebra"),
        wrong("rename: a dependency to a string", &format!("\"{name}\"")).hinting(unraw(right)),
        wrong("rename: a dependency to a reference", &format!("&{right}")).hinting(unraw(right)),
        wrong("rename: a dependency to a call", &format!("{right}()")).hinting(unraw(right)),
        wrong(
            "rename: a dependency to a method call",
            &format!("{right}.iter()"),
        )
        .hinting(unraw(right)),
        wrong("rename: a dependency to a path", &format!("Self::{right}")).hinting(unraw(right)),
        wrong(
            "rename: a dependency to a step of another flow",
            &format!("Other::{right}"),
        ),
        wrong("rename: a dependency to a variant", &variant(source, name)).hinting(unraw(right)),
        wrong("rename: a dependency to the step itself", &step.name.text),
    ];
    let words = WORDS.iter();
    edits.extend(words.map(|word| wrong("rename: a dependency to a word", word)));
    if let Some(from) = source.step(name) {
        let slug = from.text_of("slug").filter(|slug| *slug != name);
        edits.extend(
            slug.map(|slug| wrong("rename: a dependency to its slug", slug).hinting(unraw(right))),
        );
    }
    let plain = source
        .others
        .iter()
        .filter_map(|place| function_name(source.at(place)));
    edits.extend(plain.map(|name| wrong("rename: a dependency to a function", name)));
    edits
}

/// `FlowStep::Parse`.
fn variant(source: &Source, name: &str) -> String {
    let mut letters = name.chars();
    let first = letters.next().expect("a name").to_uppercase();
    let of = source.arg_text("step_enum").unwrap_or("Step");
    format!("{of}::{first}{}", letters.as_str())
}

fn function_name(item: &str) -> Option<&str> {
    let rest = item.strip_prefix("fn ")?;
    rest.split('(').next()
}

fn map(source: &Source, step: &Step, word: &Word, seed: u64) -> Vec<Mutation> {
    let right = &word.text;
    let wrong = |kind, text: &str| Mutation::fails(kind, vec![Edit::new(&word.at, text)]);
    let mut edits = vec![
        wrong("rename: what a map is over", &typo(source, word, seed)).hinting(unraw(right)),
        wrong("rename: what a map is over, to no step", "zebra"),
        wrong(
            "rename: what a map is over, to a string",
            &format!("\"{}\"", unraw(right)),
        )
        .hinting(unraw(right)),
        wrong(
            "rename: what a map is over, to a reference",
            &format!("&{right}"),
        )
        .hinting(unraw(right)),
        wrong(
            "rename: what a map is over, to a list",
            &format!("[{right}]"),
        )
        .hinting(unraw(right)),
        wrong(
            "rename: what a map is over, to a method call",
            &format!("{right}.iter()"),
        )
        .hinting(unraw(right)),
        wrong(
            "rename: what a map is over, to the step itself",
            &step.name.text,
        ),
        wrong("rename: what a map is over, to a word", "state"),
    ];
    if right != "input" {
        let text = variant(source, unraw(right));
        edits.push(wrong("rename: what a map is over, to a variant", &text).hinting(unraw(right)));
    }
    edits
}

fn params(source: &Source, step: &Step, seed: u64) -> Vec<Mutation> {
    let mut edits = Vec::new();
    for param in &step.params {
        if let Some((_, word)) = &param.from {
            let typo = typo(source, word, seed);
            let edit = vec![Edit::new(&word.at, typo)];
            edits.push(Mutation::fails("rename: a `from`", edit).hinting(unraw(&word.text)));
            let edit = vec![Edit::new(&word.at, "zebra")];
            edits.push(Mutation::fails("rename: a `from` to no step", edit));
            let edit = vec![Edit::new(&word.at, format!("\"{}\"", word.text))];
            edits.push(Mutation::fails("rename: a `from` to a string", edit).hinting(&word.text));
            if let Some(name) = &param.name {
                let edit = vec![Edit::new(&name.at, "other_name")];
                edits.push(Mutation::compiles("rename: a parameter with `from`", edit));
            }
            continue;
        }
        let Some(name) = &param.name else { continue };
        let edit = |text: &str| vec![Edit::new(&name.at, text)];
        let typo = misspelt(&name.text, &name.at, seed, &taken(source));
        edits.push(Mutation::fails("rename: a parameter", edit(&typo)).hinting(param.binding()));
        edits.push(Mutation::fails(
            "rename: a parameter to no step",
            edit("zebra"),
        ));
        if !name.text.starts_with('_') && !name.text.starts_with("r#") {
            let edit = edit(&format!("_{}", name.text));
            edits.push(Mutation::compiles("rename: a parameter, with `_`", edit));
            let edit = vec![Edit::new(&name.at, format!("r#{}", name.text))];
            edits.push(Mutation::compiles("rename: a parameter, raw", edit));
        }
        let not_listed = source.steps.iter().filter(|other| {
            let is_listed = |word: &Word| unraw(&word.text) == other.unraw();
            other.unraw() != step.unraw()
                && !step.depends_on().iter().chain(step.map()).any(is_listed)
        });
        for other in not_listed {
            let kind = "rename: a parameter to a step that is no dependency";
            edits.push(Mutation::fails(kind, edit(&other.name.text)));
        }
    }
    edits
}

/// Only of steps with dependencies: fields of the input are not seen.
fn condition_keys(source: &Source, step: &Step, seed: u64) -> Vec<Mutation> {
    if step.depends_on().is_empty() {
        return Vec::new();
    }
    let args = [step.arg("if"), step.arg("if_not")];
    let values = args
        .into_iter()
        .flatten()
        .filter_map(|arg| arg.value.as_ref());
    let keys = values
        .flat_map(|value| &value.entries)
        .map(|entry| &entry.key);
    keys.flat_map(|key| {
        let edit = |text: String| vec![Edit::new(&key.at, text)];
        [
            Mutation::fails(
                "rename: a key of a condition",
                edit(typo(source, key, seed)),
            )
            .hinting(unraw(&key.text)),
            Mutation::fails(
                "rename: a key of a condition to no step",
                edit("zebra".to_owned()),
            ),
            Mutation::compiles(
                "rename: a key of a condition, quoted",
                edit(format!("\"{}\"", unraw(&key.text))),
            ),
        ]
    })
    .collect()
}

/// A function that one step alone names.
fn function(source: &Source, step: &Step, seed: u64) -> Option<Mutation> {
    let [dependent] = dependents(source, step)[..] else {
        return None;
    };
    let typo = typo(source, &step.name, seed);
    let edit = vec![Edit::new(&step.name.at, &*typo)];
    let names = [
        step.name.text.clone(),
        typo.clone(),
        dependent.name.text.clone(),
    ];
    Some(
        Mutation::fails("rename: a step", edit)
            .naming(names)
            .hinting(unraw(&typo)),
    )
}

fn types(source: &Source, seed: u64) -> Vec<Mutation> {
    let mut edits = Vec::new();
    let mut wrong = |kind, at: &Place| {
        let text = source.at(at);
        for ty in &source.types {
            let name = &ty.name.text;
            if let Some(offset) = text.find(name.as_str()) {
                let at = at.start + offset..at.start + offset + name.len();
                let typo = misspelt(name, &at, seed, &taken(source));
                edits.push(Mutation::fails(kind, vec![Edit::new(&at, typo)]));
            }
        }
    };
    for key in ["input", "state"] {
        if let Some(value) = source.arg(key).and_then(|arg| arg.value.as_ref()) {
            wrong("rename: the type of an argument", &value.at);
        }
    }
    for step in &source.steps {
        for param in &step.params {
            wrong("rename: the type of a parameter", &param.ty);
        }
        wrong("rename: the type of an output", &step.returns.arguments[0]);
    }
    for step in &source.steps {
        let word = &step.returns.result;
        let typo = misspelt(&word.text, &word.at, seed, &taken(source));
        let edit = vec![Edit::new(&word.at, typo)];
        edits.push(Mutation::fails("rename: the result", edit));
    }
    let block = &source.self_ty;
    let typo = misspelt(&block.text, &block.at, seed, &taken(source));
    edits.push(Mutation::fails(
        "rename: the flow",
        vec![Edit::new(&block.at, typo)],
    ));
    for step in &source.steps {
        let contexts = step.params.iter().filter(|param| param.binding() == "ctx");
        for param in contexts.filter(|param| taken_by(source, step, param).is_some()) {
            let at = param.ty.end - facts::CONTEXT.len()..param.ty.end;
            let typo = misspelt(facts::CONTEXT, &at, seed, &[]);
            let edit = vec![Edit::new(&at, typo)];
            edits.push(Mutation::fails("rename: the context's type", edit));
        }
    }
    edits
}
