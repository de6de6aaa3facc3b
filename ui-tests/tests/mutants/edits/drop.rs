//! Something is missing.

use crate::{
    facts::{dependents, is_skippable, taken_by, takers, uses},
    mutation::{Edit, Mutation},
    source::{Param, Place, Source, Step, Word, unraw},
};

pub fn all(source: &Source) -> Vec<Mutation> {
    let mut edits = of_flow(source);
    edits.extend(commas(source));
    edits.extend(derives(source));
    for step in &source.steps {
        edits.extend(edges(source, step));
        edits.extend(modes(source, step));
        edits.extend(params(source, step));
        edits.extend(marks(source, step));
        edits.extend(returns(source, step));
    }
    edits
}

fn of_flow(source: &Source) -> Vec<Mutation> {
    let mut edits = Vec::new();
    let without = |key: &str| {
        let arg = source.arg(key)?;
        Some(vec![Edit::remove_element(source, &arg.whole)])
    };
    if let Some(edit) = without("input") {
        edits.push(
            Mutation::fails("drop: the flow's input", edit)
                .of_the_whole()
                .hinting("input = "),
        );
    }
    let takers = source.steps.iter().flat_map(|step| &step.params);
    if let (Some(edit), Some(state)) = (without("state"), source.arg_text("state")) {
        let takers = takers.filter(|param| param.binding() == "state").count();
        let mutation = Mutation::fails("drop: the flow's state", edit);
        edits.push(mutation.naming(["state"]).at_most(takers).hinting(state));
    }
    for key in [
        "slug",
        "with_step_queues",
        "step_enum",
        "output",
        "output_derive",
        "crate",
    ] {
        let edit = without(key);
        edits.extend(
            edit.map(|edit| Mutation::compiles("drop: an argument that has a default", edit)),
        );
    }
    let of_flow = source
        .types
        .iter()
        .find(|ty| ty.name.text == source.self_ty.text);
    edits.extend(of_flow.map(|ty| {
        let edit = vec![Edit::remove(&ty.whole)];
        Mutation::fails("drop: the flow's type", edit).naming([&*ty.name.text])
    }));
    edits
}

/// Each comma of an attribute, a list or a signature; the last of each means nothing.
fn commas(source: &Source) -> Vec<Mutation> {
    let mut lists: Vec<Vec<Place>> =
        vec![source.args.iter().map(|arg| arg.whole.clone()).collect()];
    let args = source
        .args
        .iter()
        .chain(source.steps.iter().flat_map(|step| &step.args));
    for value in args.filter_map(|arg| arg.value.as_ref()) {
        lists.push(value.elements.iter().map(|word| word.at.clone()).collect());
        lists.push(
            value
                .entries
                .iter()
                .map(|entry| entry.whole.clone())
                .collect(),
        );
    }
    lists.extend(
        source
            .steps
            .iter()
            .map(|step| step.args.iter().map(|arg| arg.whole.clone()).collect()),
    );
    let mut edits: Vec<Mutation> = lists
        .iter()
        .flat_map(|list| between(source, list, "drop: a comma"))
        .collect();
    for step in &source.steps {
        let params: Vec<Place> = step
            .params
            .iter()
            .map(|param| param.whole.clone())
            .collect();
        edits.extend(between(source, &params, "drop: a comma between parameters"));
    }
    edits
}

fn between(source: &Source, list: &[Place], kind: &'static str) -> Vec<Mutation> {
    let comma = |at: &Place| {
        let offset = source.text[at.end..].find(',').expect("a comma");
        at.end + offset..at.end + offset + 1
    };
    let mut edits = Vec::new();
    if let [most @ .., last] = list {
        edits.extend(
            most.iter()
                .map(|at| Mutation::fails(kind, vec![Edit::remove(&comma(at))])),
        );
        if source.text[last.end..].starts_with(',') {
            let edit = vec![Edit::remove(&comma(last))];
            edits.push(Mutation::compiles("drop: a comma at the end", edit));
        }
        let twice = most.iter().map(|at| {
            let edit = vec![Edit::insert(at.end, ",")];
            Mutation::fails("add: a comma", edit)
        });
        edits.extend(twice);
    }
    edits
}

fn derives(source: &Source) -> Vec<Mutation> {
    let mut edits = Vec::new();
    for ty in source.types.iter().filter(|ty| !ty.is_part) {
        let name = ty.name.text.as_str();
        let is_stored = |step: &&Step| crate::source::has_word(&step.returns.ok, name);
        let is_input = source.arg_text("input") == Some(name);
        let stored = source.steps.iter().filter(is_stored).count() + usize::from(is_input);
        for derive in &ty.derives {
            let edit = vec![Edit::remove_element(source, &derive.at)];
            if matches!(derive.text.as_str(), "Serialize" | "Deserialize") && stored > 0 {
                // Each step that returns the type is right in its own way.
                let mutation = Mutation::fails("drop: a derive", edit);
                edits.push(
                    mutation
                        .naming([name])
                        .at_most(stored)
                        .hinting(&*derive.text),
                );
            }
        }
    }
    edits
}

/// `depends_on`, `map` and what stands in them.
fn edges(source: &Source, step: &Step) -> Vec<Mutation> {
    let mut edits = Vec::new();
    let names_of = |word: &Word| [unraw(&word.text).to_owned(), step.name.text.clone()];
    for word in step.depends_on() {
        let Some(from) = source.step(&word.text) else {
            continue;
        };
        if uses(source, step, from) == 0 {
            continue;
        }
        let edit = vec![Edit::remove_element(source, &word.at)];
        let mutation = Mutation::fails("drop: a dependency", edit);
        edits.push(mutation.naming(names_of(word)).hinting(unraw(&word.text)));
    }
    let used = |word: &&Word| {
        source
            .step(&word.text)
            .is_some_and(|from| uses(source, step, from) > 0)
    };
    let used: Vec<&Word> = step.depends_on().iter().filter(used).collect();
    if let (Some(arg), false) = (step.arg("depends_on"), used.is_empty()) {
        let names = used.iter().flat_map(|word| names_of(word));
        let edit = vec![Edit::remove_element(source, &arg.whole)];
        edits.push(
            Mutation::fails("drop: `depends_on`", edit)
                .naming(names.clone())
                .at_most(used.len()),
        );
        if let Some(value) = &arg.value {
            let edit = vec![Edit::new(&value.at, "[]")];
            let mutation = Mutation::fails("drop: all dependencies", edit);
            edits.push(mutation.naming(names).at_most(used.len()));
        }
    }
    if let (Some(arg), Some(map)) = (step.arg("map"), step.map()) {
        let takes_item = step.params.iter().any(|param| param.binding() == "item");
        if takes_item && dependents(source, step).is_empty() {
            let edit = vec![Edit::remove_element(source, &arg.whole)];
            let mutation = Mutation::fails("drop: `map`", edit);
            edits.push(mutation.naming(["item"]).hinting("map = "));
        }
        let edit = vec![Edit::new(
            &arg.whole,
            format!("depends_on = [{}]", map.text),
        )];
        if takes_item && map.text != "input" && dependents(source, step).is_empty() {
            edits.push(Mutation::fails("swap: `map` and `depends_on`", edit).naming(["item"]));
        }
    }
    edits
}

/// Returns the edits that make a step skippable, where one step takes it as an `Option`.
fn modes(source: &Source, step: &Step) -> Vec<Mutation> {
    let mut edits = Vec::new();
    for condition in ["if", "if_not"] {
        let (Some(arg), Some(_)) = (step.arg(condition), step.arg("when_unmet")) else {
            continue;
        };
        let takers = takers(source, step);
        if is_skippable(step) && !takers.is_empty() {
            continue;
        }
        let edit = vec![Edit::remove_element(source, &arg.whole)];
        let mutation = Mutation::fails("drop: a condition beside `when_unmet`", edit);
        edits.push(mutation.naming(["when_unmet"]));
    }
    let [(taker, _)] = takers(source, step)[..] else {
        return edits;
    };
    if step.text_of("when_exhausted") == Some("skip") {
        let arg = step.arg("when_exhausted").expect("it was read");
        let mut change = |kind, edit| {
            let mutation = Mutation::fails(kind, vec![edit]);
            edits.push(mutation.naming([&*step.name.text, &*taker.name.text]));
        };
        change(
            "drop: what makes a dependency optional",
            Edit::remove_element(source, &arg.whole),
        );
        let value = arg.value.as_ref().expect("a mode");
        change(
            "swap: what makes a dependency optional",
            Edit::new(&value.at, "\"fail\""),
        );
        change(
            "swap: what makes a dependency optional",
            Edit::new(&value.at, "\"skip-cascade\""),
        );
    }
    edits
}

fn params(source: &Source, step: &Step) -> Vec<Mutation> {
    let mut edits = Vec::new();
    for param in &step.params {
        let edit = vec![Edit::remove_element(source, &param.whole)];
        edits.push(Mutation::compiles("drop: a parameter", edit));
        edits.extend(parts(source, step, param));
    }
    edits
}

fn parts(source: &Source, step: &Step, param: &Param) -> Vec<Mutation> {
    let mut edits = Vec::new();
    if let Some((attr, name)) = &param.from {
        let edit = vec![Edit::remove(attr)];
        edits.push(
            Mutation::fails("drop: a `from`", edit)
                .naming([unraw(&name.text)])
                .hinting("from("),
        );
        let edit = vec![Edit::new(attr, "#[from]")];
        edits.push(Mutation::fails("drop: the name of a `from`", edit));
        let edit = vec![Edit::new(attr, "#[from()]")];
        edits.push(Mutation::fails("drop: the name of a `from`", edit));
    }
    let colon = source.text[param.pattern.end..].find(':').expect("a type");
    let colon = param.pattern.end + colon..param.pattern.end + colon + 1;
    edits.push(Mutation::fails(
        "drop: the colon of a parameter",
        vec![Edit::remove(&colon)],
    ));
    let ty = colon.start..param.ty.end;
    edits.push(Mutation::fails(
        "drop: the type of a parameter",
        vec![Edit::remove(&ty)],
    ));
    let text = param.type_text.as_str();
    if text.starts_with("&[") || text == "&str" {
        let edit = vec![Edit::remove(&(param.ty.start..param.ty.start + 1))];
        edits.push(Mutation::fails("drop: the `&` of an unsized type", edit));
    }
    let taken = taken_by(source, step, param);
    if taken.is_some_and(|taken| taken.is_optional && text.starts_with("Option<")) {
        let inner = &text["Option<".len()..text.len() - 1];
        let edit = vec![Edit::new(&param.ty, inner)];
        let mutation = Mutation::fails("drop: an `Option`", edit);
        edits.push(mutation.naming([param.binding()]).hinting("Option<"));
    }
    edits
}

/// `#[step]`, `async`, `fn`, and the step itself.
fn marks(source: &Source, step: &Step) -> Vec<Mutation> {
    let name = step.name.text.as_str();
    let mut edits = vec![
        Mutation::fails("drop: `async`", vec![Edit::remove(&step.async_token)]).hinting("async"),
        // rustc finds no item behind the attribute, and says so there.
        Mutation::fails("drop: `fn`", vec![Edit::remove(&step.fn_token)]).naming([name, "step"]),
        Mutation::fails("drop: a name", vec![Edit::remove(&step.name.at)]),
    ];
    // rustc has another error for patterns, of which `mut` is one.
    let is_plain = |param: &Param| (param.name.as_ref()).is_some_and(|it| it.at == param.pattern);
    if step.params.iter().all(is_plain) {
        let edit = vec![Edit::new(&step.body, ";")];
        edits.push(Mutation::fails("drop: a body", edit).naming([name]));
    }
    let has_from = step.params.iter().any(|param| param.from.is_some());
    if let [dependent] = dependents(source, step)[..] {
        let names = [unraw(name), &dependent.name.text];
        let edit = vec![Edit::remove(&step.whole)];
        edits.push(Mutation::fails("drop: a step", edit).naming(names));
        if !has_from {
            let edit = vec![Edit::remove(&step.attr)];
            edits.push(
                Mutation::fails("drop: `#[step]`", edit)
                    .naming(names)
                    .hinting("#[step]"),
            );
        }
    }
    if dependents(source, step).is_empty() {
        let edit = vec![Edit::remove(&step.whole)];
        edits.push(Mutation::compiles("drop: a last step", edit));
    }
    edits
}

fn returns(source: &Source, step: &Step) -> Vec<Mutation> {
    let returns = &step.returns;
    let ok = returns.ok.as_str();
    let name = step.name.text.as_str();
    let edit = |at: &Place, text: &str| vec![Edit::new(at, text)];
    let arrow = returns.whole.start..returns.ty.start;
    vec![
        Mutation::fails("drop: a return type", edit(&returns.whole, ""))
            .naming([name])
            .hinting("Result"),
        Mutation::fails(
            "drop: a return type behind its arrow",
            edit(&returns.ty, ""),
        ),
        Mutation::fails("drop: an arrow", edit(&arrow, "")),
        Mutation::fails("drop: the result", edit(&returns.ty, ok))
            .hinting(format!("StepResult<{ok}>")),
        Mutation::fails(
            "drop: the output",
            edit(&returns.ty, source.at(&returns.result.at)),
        ),
    ]
}
