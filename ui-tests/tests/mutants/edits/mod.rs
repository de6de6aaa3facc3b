//! Every edit that can be made to a flow, by kind.

mod add;
mod drop;
mod moves;
mod rename;
mod retype;
mod signature;
mod surroundings;
mod swap;
mod value;
mod wrong_key;

use crate::{mutation::Mutation, source::Source};

/// All edits of a flow; misspellings differ with the seed.
pub fn all(source: &Source, seed: u64) -> Vec<Mutation> {
    let mut edits = rename::all(source, seed);
    edits.extend(wrong_key::all(source, seed));
    edits.extend(value::all(source));
    edits.extend(drop::all(source));
    edits.extend(swap::all(source));
    edits.extend(retype::all(source));
    edits.extend(signature::all(source));
    edits.extend(moves::all(source));
    edits.extend(add::all(source));
    edits.extend(surroundings::all(source));
    edits
}
