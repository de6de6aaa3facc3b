//! Parameters whose name leads to nothing: what was meant.

use pgflow_definition::slug::BINDING_NAMES;
use syn::Type;

use crate::{
    model::{
        Edge, Flow, Param, Step,
        types::{owned, show, vec_element},
    },
    names::{nearest, quoted},
};

pub(super) fn message(flow: &Flow<'_>, step: &Step<'_>, param: &Param) -> String {
    let (name, key) = (&step.name, &param.key);
    let dependency = flow.steps.iter().find(|other| other.name == *key);
    if let Some(dependency) = dependency.filter(|_| step.is_end_step() && key != name) {
        return format!(
            "`{name}` runs when the run has ended, and takes no output by the name of its step\n\nhelp: take `end: &RunEnd`, and in the body \
             `end.output::<{}>({}::{})?`",
            output_type(flow, key),
            flow.step_enum,
            dependency.variant,
        );
    }
    if key != name && flow.steps.iter().any(|other| other.name == *key) {
        let help = not_a_dependency(flow, step, key);
        return format!("step `{name}` doesn't depend on `{key}`\n\nhelp: {help}");
    }
    if flow.functions.contains(key) {
        let help = match step.map {
            Some(_) => "add `#[step]` above it".to_owned(),
            None => format!(
                "add `#[step]` above it and name it here: {}",
                depend_on(flow, step, key)
            ),
        };
        return format!("`{key}` is a function here, but not a step\n\nhelp: {help}");
    }
    let help = help(flow, step, param);
    format!("`{key}` is not something step `{name}` can take\n\nhelp: {help}")
}

/// The output of a step, as it is written.
fn output_type(flow: &Flow<'_>, name: &str) -> String {
    let index = flow.steps.iter().position(|step| step.name == *name);
    let output = index.and_then(|index| flow.output_type(index));
    let ty = output.and_then(|output| syn::parse2::<Type>(output).ok());
    ty.map_or_else(|| "Output".to_owned(), |ty| show(&ty))
}

fn not_a_dependency(flow: &Flow<'_>, step: &Step<'_>, key: &str) -> String {
    match &step.args.map {
        Some(source) => format!(
            "`{}` maps over `{}`; a map step can take: {}",
            step.name,
            source.name,
            quoted(candidates(flow, step))
        ),
        None => format!("add it: {}", depend_on(flow, step, key)),
    }
}

/// The list of dependencies with one more, and with the steps that its wrong names stand for.
fn depend_on(flow: &Flow<'_>, step: &Step<'_>, key: &str) -> String {
    match &step.args.depends_on {
        Some(_) => {
            let listed = step.edges.iter().map(|edge| match edge.meant() {
                Some(meant) => flow.steps[meant].name.clone(),
                None => edge.at.to_string(),
            });
            let names: Vec<String> = listed.chain([key.to_owned()]).collect();
            format!("`depends_on = [{}]`", names.join(", "))
        }
        None => format!("`#[step(depends_on = [{key}])]`"),
    }
}

/// Returns the likely intention, and the way to keep the name.
fn help(flow: &Flow<'_>, step: &Step<'_>, param: &Param) -> String {
    let (name, key, ty) = (&step.name, &param.key, show(&param.ty));
    let from = |meant: &str| format!("`#[from({meant})] {key}: {ty}`");
    let by_type = by_type(flow, step, &param.ty);
    let by_name = by_name(flow, step, key).filter(|name| by_type.is_none_or(|it| it == *name));
    if let Some(meant) = by_name {
        let question = format!("did you mean `{meant}`?");
        return if param.is_from {
            question
        } else {
            format!("{question} Or, to keep the name, write {}", from(meant))
        };
    }
    if let Some(meant) = by_type {
        let what = match meant {
            "input" => "the flow's input".to_owned(),
            "state" => "the flow's state".to_owned(),
            "item" => "an element of the list".to_owned(),
            "ctx" => "the context of the attempt".to_owned(),
            "end" if step.is_end_step() => "the end of the run".to_owned(),
            dependency => format!("the output of `{dependency}`"),
        };
        return if param.is_from {
            format!("{what} has this type: write `#[from({meant})]`")
        } else {
            format!(
                "{what} has this type: name the parameter `{meant}`, or, to keep the name, write {}",
                from(meant)
            )
        };
    }
    if let Some(other) = nearest(key, other_steps(flow, step)) {
        return format!(
            "did you mean the step `{other}`? Then depend on it: {}",
            depend_on(flow, step, other)
        );
    }
    let names = candidates(flow, step);
    let list = quoted(names.iter().copied());
    match names.first() {
        Some(first) if !param.is_from => format!(
            "a parameter of `{name}` can be: {list}; any other name needs `#[from(..)]`, as in {}",
            from(first)
        ),
        _ => format!("a parameter of `{name}` can be: {list}"),
    }
}

/// A name that is near, or another word for one.
fn by_name<'m>(flow: &'m Flow<'_>, step: &'m Step<'_>, key: &str) -> Option<&'m str> {
    const OTHER_WORDS: [(&str, &str); 4] = [
        ("context", "ctx"),
        ("app", "state"),
        ("app_state", "state"),
        ("element", "item"),
    ];
    if let Some(name) = nearest(key, candidates(flow, step)) {
        return Some(name);
    }
    let word = nearest(key, OTHER_WORDS.map(|(word, _)| word))?;
    let (_, name) = OTHER_WORDS.into_iter().find(|(other, _)| *other == word)?;
    (name != "item" || step.map.is_some()).then_some(name)
}

/// The only one of the values that the step can take whose type is written like this one.
fn by_type<'m>(flow: &'m Flow<'_>, step: &'m Step<'_>, ty: &Type) -> Option<&'m str> {
    let written = |ty: &Type| show(&owned(ty));
    let mut values: Vec<(&str, String)> = dependencies(flow, step)
        .filter_map(|(name, index)| Some((name, flow.output_type(index)?)))
        .filter_map(|(name, ty)| Some((name, written(&syn::parse2(ty).ok()?))))
        .collect();
    values.extend(flow.input.iter().map(|input| ("input", written(input))));
    values.extend(flow.state.iter().map(|state| ("state", written(state))));
    values.extend(item_type(flow, step).map(|item| ("item", written(&item))));
    values.push(("ctx", "StepContext".to_owned()));
    values.extend(step.is_end_step().then(|| ("end", "RunEnd".to_owned())));
    let wanted = written(ty);
    let mut fitting = values.into_iter().filter(|(_, ty)| *ty == wanted);
    let (name, _) = fitting.next()?;
    fitting.next().is_none().then_some(name)
}

fn item_type(flow: &Flow<'_>, step: &Step<'_>) -> Option<Type> {
    step.map?;
    let list = match step.edges.iter().find_map(Edge::meant) {
        Some(source) => syn::parse2(flow.output_type(source)?).ok()?,
        None => flow.input.clone()?,
    };
    vec_element(&list).cloned()
}

fn other_steps<'m>(flow: &'m Flow<'_>, step: &'m Step<'_>) -> impl Iterator<Item = &'m str> {
    let names = flow.steps.iter().map(|other| other.name.as_str());
    names.filter(|name| step.map.is_none() && *name != step.name)
}

/// All that a parameter of the step can be.
pub(super) fn candidates<'m>(flow: &'m Flow<'_>, step: &'m Step<'_>) -> Vec<&'m str> {
    let words = BINDING_NAMES
        .into_iter()
        .filter(|name| *name != "item" || step.map.is_some())
        .filter(|name| *name != "state" || flow.args.has("state"));
    let dependencies = dependencies(flow, step).map(|(name, _)| name);
    let end = step.is_end_step().then_some("end");
    dependencies.chain(end).chain(words).collect()
}

/// The dependencies that a parameter can name: a map step gets elements of its one dependency
/// instead.
fn dependencies<'m>(
    flow: &'m Flow<'_>,
    step: &'m Step<'_>,
) -> impl Iterator<Item = (&'m str, usize)> {
    let edges = step.edges.iter().filter(|_| step.map.is_none());
    edges
        .filter_map(Edge::meant)
        .map(|dependency| (flow.steps[dependency].name.as_str(), dependency))
}
