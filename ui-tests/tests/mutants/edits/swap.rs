//! Two parts change places.

use crate::{
    facts::{forms, taken_by, takers},
    mutation::{Edit, Mutation},
    source::{Place, Source, Step},
};

pub fn all(source: &Source) -> Vec<Mutation> {
    let mut edits = Vec::new();
    let keeps = |kind, places: Vec<Place>| {
        let swaps = neighbours(&places);
        let swaps = swaps.map(|(one, other)| Edit::swap(source, one, other));
        swaps
            .map(|edits| Mutation::compiles(kind, edits))
            .collect::<Vec<_>>()
    };
    edits.extend(keeps("swap: arguments", wholes(&source.args)));
    edits.extend(keeps(
        "swap: steps",
        source.steps.iter().map(|step| step.whole.clone()).collect(),
    ));
    for step in &source.steps {
        let params = step
            .params
            .iter()
            .map(|param| param.whole.clone())
            .collect();
        edits.extend(keeps("swap: parameters", params));
        edits.extend(keeps("swap: arguments", wholes(&step.args)));
        let words = step
            .depends_on()
            .iter()
            .map(|word| word.at.clone())
            .collect();
        edits.extend(keeps("swap: dependencies", words));
        for arg in &step.args {
            let entries = arg.value.iter().flat_map(|value| &value.entries);
            let entries = entries.map(|entry| entry.whole.clone()).collect();
            edits.extend(keeps("swap: keys of a condition", entries));
        }
        for (item, place) in source.others.iter().map(|other| (other, &step.whole)) {
            edits.push(Mutation::compiles(
                "swap: a step and another item",
                Edit::swap(source, item, place),
            ));
        }
        edits.extend(names_and_types(source, step));
        if let [ok, error] = &step.returns.arguments[..] {
            let swap = Edit::swap(source, ok, error);
            edits.push(
                Mutation::fails("swap: output and error", swap)
                    .naming([&*step.name.text, "item"])
                    .at_most(2 + takers(source, step).len()),
            );
        }
    }
    edits
}

fn wholes(args: &[crate::args::Arg]) -> Vec<Place> {
    args.iter().map(|arg| arg.whole.clone()).collect()
}

fn neighbours(places: &[Place]) -> impl Iterator<Item = (&Place, &Place)> {
    places.iter().zip(places.iter().skip(1))
}

/// The types of two parameters; one error for each that does not fit.
fn names_and_types(source: &Source, step: &Step) -> Vec<Mutation> {
    let mut edits = Vec::new();
    let pairs = step.params.iter().zip(step.params.iter().skip(1));
    for (one, other) in pairs {
        let fits = |from, ty: &str| {
            taken_by(source, step, from)
                .is_some_and(|taken| forms(&taken).iter().any(|form| form == ty))
        };
        let wrong = [fits(one, &other.type_text), fits(other, &one.type_text)];
        let wrong = wrong.into_iter().filter(|fits| !fits).count();
        if wrong > 0 {
            let mutation = Mutation::fails(
                "swap: types of parameters",
                Edit::swap(source, &one.ty, &other.ty),
            );
            edits.push(
                mutation
                    .at_most(wrong)
                    .naming([one.binding(), other.binding()]),
            );
        }
    }
    edits
}
