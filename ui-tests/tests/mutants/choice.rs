//! The choice of the mutants of a run.

use std::{
    collections::{BTreeMap, BTreeSet},
    hash::{DefaultHasher, Hash, Hasher},
};

use fastrand::Rng;

use crate::{edits, mutation::Mutation, source::Source};

pub struct Mutant {
    pub source: usize,
    pub mutation: Mutation,
    pub text: String,
}

/// The same number of each kind, as far as there are that many. Each kind is chosen from by itself,
/// so that a new one leaves the choice among the others as it is.
pub fn choose(sources: &[Source], seed: u64, number: usize) -> Vec<Mutant> {
    let mut chosen = Vec::new();
    let mut seen = BTreeSet::new();
    let mut spelling = seed;
    while chosen.len() < number {
        let mut kinds = by_kind(sources, spelling, seed);
        let before = chosen.len();
        // Each turn takes one of each kind.
        while chosen.len() < number && kinds.values().any(|kind| !kind.is_empty()) {
            for kind in kinds.values_mut() {
                let Some((source, mutation)) = kind.pop().filter(|_| chosen.len() < number) else {
                    continue;
                };
                let text = mutation.apply(&sources[source]);
                if seen.insert(text.clone()) {
                    chosen.push(Mutant {
                        source,
                        mutation,
                        text,
                    });
                }
            }
        }
        if chosen.len() == before {
            break;
        }
        spelling = spelling.wrapping_add(1);
    }
    chosen
}

type Kinds = BTreeMap<&'static str, Vec<(usize, Mutation)>>;

fn by_kind(sources: &[Source], spelling: u64, seed: u64) -> Kinds {
    let mut kinds = Kinds::new();
    for (index, source) in sources.iter().enumerate() {
        for mutation in edits::all(source, spelling) {
            kinds
                .entry(mutation.kind)
                .or_default()
                .push((index, mutation));
        }
    }
    for (kind, edits) in &mut kinds {
        let mut hasher = DefaultHasher::new();
        (kind, seed).hash(&mut hasher);
        Rng::with_seed(hasher.finish()).shuffle(edits);
    }
    kinds
}
