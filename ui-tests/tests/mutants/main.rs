//! A mutation test of programs: right flows, each with one edit of a known kind, and what the
//! compiler says about them.
//!
//! A wrong flow has to give one error, at the edited line, in words that the user knows; a right
//! one has to compile. The suite tries some hundred mutants of a fixed seed.
//!
//! | variable | does |
//! |---|---|
//! | `PGFLOW_MUTANTS=5000` | tries more of them |
//! | `PGFLOW_MUTANTS_SEED=7` | tries others |
//! | `PGFLOW_MUTANTS_ONLY=rename` | tries the kinds of edits that contain this |
//! | `PGFLOW_MUTANTS_SHOW=known` | prints an example of each known shortcoming, too |
//! | `PGFLOW_MUTANTS_KNOWN=overwrite` | writes `known.txt`, which counts the known shortcomings |
//!
//! With `--nocapture` a run prints its figures by kind of edit.

mod args;
mod choice;
mod edits;
mod facts;
mod judge;
mod lab;
mod mutation;
mod report;
mod source;

use std::{collections::BTreeSet, env, io, time::Instant};

use crate::{
    choice::choose,
    judge::{Names, judge},
    lab::Lab,
    report::{Judged, Known, counts, example, table},
    source::Source,
};

const SEED: u64 = 1;
const NUMBER: usize = 200;

const FLOWS: [(&str, &str); 4] = [
    ("audit", include_str!("flows/audit.rs")),
    ("orders", include_str!("flows/orders.rs")),
    ("ingest", include_str!("flows/ingest.rs")),
    ("letters", include_str!("flows/letters.rs")),
];

fn number_from(variable: &str, default: u64) -> u64 {
    env::var(variable).map_or(default, |text| {
        text.parse()
            .unwrap_or_else(|error| panic!("{variable}={text}: {error}"))
    })
}

#[test]
fn one_edit_is_one_error() -> io::Result<()> {
    let seed = number_from("PGFLOW_MUTANTS_SEED", SEED);
    let number = number_from("PGFLOW_MUTANTS", NUMBER as u64) as usize;
    let sources: Vec<Source> = FLOWS
        .iter()
        .map(|(name, text)| Source::parse(name, text))
        .collect();
    let mut mutants = choose(&sources, seed, number);
    let only = env::var("PGFLOW_MUTANTS_ONLY").ok();
    if let Some(only) = &only {
        mutants.retain(|mutant| mutant.mutation.kind.contains(only.as_str()));
    }
    let is_of_the_suite = seed == SEED && number == NUMBER && only.is_none();

    let begin = Instant::now();
    let right = sources.iter().map(|source| source.text.to_owned());
    let texts: Vec<String> = (mutants.iter().map(|mutant| mutant.text.clone()))
        .chain(right)
        .collect();
    let errors = Lab::new()?.errors(&texts)?;
    let of_right = errors.range(mutants.len()..).next();
    assert!(
        of_right.is_none(),
        "a flow is wrong before it is edited: {of_right:?}"
    );
    let names = Names::read();
    let judged: Vec<Judged<'_>> = (mutants.iter().enumerate())
        .map(|(index, mutant)| {
            let errors = errors.get(&index).map_or(&[][..], Vec::as_slice);
            let source = &sources[mutant.source];
            let faults = judge(source, &mutant.mutation, errors, &names);
            Judged {
                mutant,
                errors,
                faults,
            }
        })
        .collect();
    println!("{}", table(&judged));
    println!(
        "{} mutants of seed {seed} in {:.1} s",
        mutants.len(),
        begin.elapsed().as_secs_f32()
    );

    let counts = counts(&judged);
    if env::var("PGFLOW_MUTANTS_KNOWN").is_ok_and(|value| value == "overwrite") {
        assert!(is_of_the_suite, "only the run of the suite is counted");
        return Known::write(&counts);
    }
    let known = Known::read()?;
    let shows_known = env::var("PGFLOW_MUTANTS_SHOW").is_ok_and(|value| value == "known");
    let mut shown = BTreeSet::new();
    let mut is_worse = Vec::new();
    for ((kind, fault), found) in &counts {
        let known = known.count(kind, *fault);
        // Another run finds what is known in other numbers.
        let is_known = if is_of_the_suite {
            *found <= known
        } else {
            known > 0
        };
        if !is_known {
            is_worse.push(format!("{kind}: {fault}: {found}, not {known}"));
        }
        if is_known && !shows_known {
            continue;
        }
        let smallest = (judged.iter().enumerate())
            .filter(|(_, it)| it.mutant.mutation.kind == *kind && it.faults.contains(fault))
            .min_by_key(|(index, it)| (shown.contains(index), example(&sources, it, &names).len()));
        if let Some((index, smallest)) = smallest.filter(|(index, _)| !shown.contains(index)) {
            println!("{}", example(&sources, smallest, &names));
            shown.insert(index);
        }
    }
    assert!(
        is_worse.is_empty(),
        "seed {seed}, {number} mutants:\n{}",
        is_worse.join("\n")
    );
    if is_of_the_suite {
        let outdated = known.outdated(&counts);
        assert!(
            outdated.is_empty(),
            "better than known.txt says; PGFLOW_MUTANTS_KNOWN=overwrite writes it:\n{}",
            outdated.join("\n")
        );
    }
    Ok(())
}
