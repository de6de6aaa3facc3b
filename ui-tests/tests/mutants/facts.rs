//! The rules of the language, as far as verdicts on edits need them.

use crate::source::{Param, Source, Step, unraw};

/// The type of `ctx`.
pub const CONTEXT: &str = "StepContext";

/// Names of parameters that are no steps.
pub const WORDS: [&str; 4] = ["input", "item", "ctx", "state"];

pub const FLOW_KEYS: [&str; 12] = [
    "input",
    "state",
    "slug",
    "with_step_queues",
    "step_enum",
    "output",
    "output_derive",
    "vis",
    "crate",
    "max_attempts",
    "base_delay",
    "timeout",
];

pub const STEP_KEYS: [&str; 11] = [
    "slug",
    "depends_on",
    "map",
    "max_attempts",
    "base_delay",
    "timeout",
    "start_delay",
    "if",
    "if_not",
    "when_unmet",
    "when_exhausted",
];

/// All names that a misspelling must not hit.
pub fn taken(source: &Source) -> Vec<&str> {
    let words = WORDS.iter().chain(&FLOW_KEYS).chain(&STEP_KEYS).copied();
    let steps = source.steps.iter().map(Step::unraw);
    let types = source.types.iter().map(|ty| ty.name.text.as_str());
    words.chain(steps).chain(types).collect()
}

/// Returns whether steps that depend on this one may run without its output.
pub fn is_skippable(step: &Step) -> bool {
    let is_conditional = step.arg("if").is_some() || step.arg("if_not").is_some();
    let unmet = is_conditional && step.text_of("when_unmet").unwrap_or("skip") == "skip";
    unmet || step.text_of("when_exhausted") == Some("skip")
}

/// The type of a step's output, all elements of a map together.
pub fn output(step: &Step) -> String {
    match step.map() {
        Some(_) => format!("Vec<{}>", step.returns.ok),
        None => step.returns.ok.clone(),
    }
}

/// The source of a parameter's value, and the way in which it is taken.
pub struct Taken<'s> {
    /// The type of the value.
    pub ty: String,
    /// The step that returns it.
    pub step: Option<&'s Step>,
    /// `true` if it is an `Option` of the type.
    pub is_optional: bool,
}

pub fn taken_by<'s>(source: &'s Source, step: &Step, param: &Param) -> Option<Taken<'s>> {
    let plain = |ty: &str| Taken {
        ty: ty.to_owned(),
        step: None,
        is_optional: false,
    };
    match param.binding() {
        "ctx" => Some(plain(CONTEXT)),
        "input" => Some(plain(source.arg_text("input")?)),
        "state" => Some(plain(source.arg_text("state")?)),
        "item" => {
            let from = unraw(&step.map()?.text);
            let list = match source.step(from) {
                Some(from) => output(from),
                None => source.arg_text("input")?.to_owned(),
            };
            Some(Taken {
                ty: element(&list)?.to_owned(),
                step: source.step(from),
                is_optional: false,
            })
        }
        name => {
            let from = source.step(name)?;
            Some(Taken {
                ty: output(from),
                step: Some(from),
                is_optional: is_skippable(from),
            })
        }
    }
}

/// The `T` of `Vec<T>`.
pub fn element(ty: &str) -> Option<&str> {
    ty.strip_prefix("Vec<")?.strip_suffix('>')
}

/// Every right form of a parameter's type.
pub fn forms(taken: &Taken<'_>) -> Vec<String> {
    let ty = &taken.ty;
    let mut forms = vec![ty.clone(), format!("&{ty}")];
    forms.extend(element(ty).map(|element| format!("&[{element}]")));
    if ty == "String" {
        forms.push("&str".to_owned());
    }
    if taken.is_optional {
        let optional = format!("&Option<{ty}>");
        forms = forms.iter().map(|form| format!("Option<{form}>")).collect();
        forms.push(optional);
    }
    forms
}

/// The parameters that take a step's output, or an element of it.
pub fn takers<'s>(source: &'s Source, step: &Step) -> Vec<(&'s Step, &'s Param)> {
    let all = (source.steps.iter()).flat_map(|other| other.params.iter().map(move |p| (other, p)));
    all.filter(|(other, param)| {
        let taken = taken_by(source, other, param);
        taken.is_some_and(|taken| taken.step.is_some_and(|from| from.unraw() == step.unraw()))
    })
    .collect()
}

/// The steps that name this one in `depends_on` or `map`.
pub fn dependents<'s>(source: &'s Source, step: &Step) -> Vec<&'s Step> {
    let names = |other: &&Step| {
        let mut words = other.depends_on().iter().chain(other.map());
        words.any(|word| unraw(&word.text) == step.unraw())
    };
    source.steps.iter().filter(names).collect()
}

/// All that a step is behind, itself included.
pub fn ancestors<'s>(source: &'s Source, step: &'s Step) -> Vec<&'s Step> {
    let mut found = vec![step];
    let mut next = 0;
    while let Some(step) = found.get(next) {
        for word in step.depends_on().iter().chain(step.map()) {
            let from = source.step(&word.text);
            if let Some(from) =
                from.filter(|from| found.iter().all(|it| it.unraw() != from.unraw()))
            {
                found.push(from);
            }
        }
        next += 1;
    }
    found
}

/// Names that a step uses of another one: parameters and keys of conditions.
pub fn uses(source: &Source, step: &Step, of: &Step) -> usize {
    let params = (step.params.iter())
        .filter(|param| {
            taken_by(source, step, param)
                .is_some_and(|taken| taken.step.is_some_and(|from| from.unraw() == of.unraw()))
        })
        .count();
    params
        + condition_keys(step)
            .filter(|key| key.trim_matches('"') == of.unraw())
            .count()
}

fn condition_keys(step: &Step) -> impl Iterator<Item = &str> {
    let args = [step.arg("if"), step.arg("if_not")];
    (args.into_iter().flatten())
        .filter_map(|arg| arg.value.as_ref())
        .flat_map(|value| &value.entries)
        .map(|entry| entry.key.text.as_str())
}
