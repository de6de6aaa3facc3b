//! The figures of a run, and what it found that was not known.

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    fmt::Write,
    fs, io,
    path::{Path, PathBuf},
};

use cargo_metadata::diagnostic::Diagnostic;

use crate::{
    choice::Mutant,
    judge::{Fault, Names, internal_name, rendered},
    mutation::Verdict,
    source::Source,
};

/// The number of times that each fault was found in each kind of edit.
pub type Counts = BTreeMap<(&'static str, Fault), usize>;

pub struct Judged<'m> {
    pub mutant: &'m Mutant,
    pub errors: &'m [Diagnostic],
    pub faults: BTreeSet<Fault>,
}

pub fn counts(judged: &[Judged<'_>]) -> Counts {
    let mut counts = Counts::new();
    for judged in judged {
        for fault in &judged.faults {
            *counts
                .entry((judged.mutant.mutation.kind, *fault))
                .or_default() += 1;
        }
    }
    counts
}

/// A line for each kind.
pub fn table(judged: &[Judged<'_>]) -> String {
    let counts = counts(judged);
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for judged in judged {
        *kinds.entry(judged.mutant.mutation.kind).or_default() += 1;
    }
    let mut table = format!("{:<55} mutants", "kind of edit");
    for fault in Fault::ALL {
        table += &format!(" {:>8}", fault.word());
    }
    table.push('\n');
    let mut sum = BTreeMap::new();
    for (kind, mutants) in &kinds {
        table += &format!("{kind:<55} {mutants:>7}");
        for fault in Fault::ALL {
            let count = counts
                .iter()
                .find(|((of, it), _)| of == kind && *it == fault);
            let count = count.map_or(0, |(_, count)| *count);
            *sum.entry(fault).or_insert(0) += count;
            table += &format!(
                " {:>8}",
                if count == 0 {
                    String::new()
                } else {
                    count.to_string()
                }
            );
        }
        table.push('\n');
    }
    table += &format!("{:<55} {:>7}", "all", judged.len());
    for fault in Fault::ALL {
        table += &format!(" {:>8}", sum.get(&fault).copied().unwrap_or(0));
    }
    let any = judged.iter().filter(|it| !it.faults.is_empty()).count();
    table += &format!("\n{any} of {} have a shortcoming\n", judged.len());
    table
}

/// The edit and what came of it.
pub fn example(sources: &[Source], judged: &Judged<'_>, names: &Names) -> String {
    let Judged {
        mutant,
        errors,
        faults,
    } = judged;
    let source = &sources[mutant.source];
    let words: Vec<&str> = faults.iter().map(|fault| fault.word()).collect();
    let mut text = format!(
        "## {} ({}): {}\n",
        mutant.mutation.kind,
        source.name,
        words.join(", ")
    );
    match &mutant.mutation.verdict {
        Verdict::Compiles => text += "expected: it compiles\n",
        Verdict::Fails(expected) => {
            text += &format!(
                "expected: errors 1 to {}, at lines {:?}",
                expected.most,
                lines(judged, source)
            );
            if let Some(hint) = &expected.hint {
                text += &format!(", that say {hint:?}");
            }
            text.push('\n');
        }
    }
    text += &mutant.mutation.diff(source);
    for error in *errors {
        if let Some(name) = internal_name(names, error, &mutant.text) {
            text += &format!("(`{name}` is of the generated code)\n");
        }
        text += rendered(error);
    }
    text
}

fn lines(judged: &Judged<'_>, source: &Source) -> Vec<usize> {
    let lines: BTreeSet<usize> = judged.mutant.mutation.lines(source).into_iter().collect();
    lines.into_iter().collect()
}

/// The known shortcomings: `count fault kind`, a line for each.
pub struct Known(BTreeMap<(String, String), usize>);

impl Known {
    fn path() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mutants/known.txt")
    }

    pub fn read() -> io::Result<Self> {
        let text = fs::read_to_string(Self::path())?;
        let lines = text
            .lines()
            .filter(|line| !line.starts_with('#') && !line.is_empty());
        let known = lines.map(|line| {
            let mut parts = line.splitn(3, ' ');
            let mut part = || {
                parts
                    .next()
                    .unwrap_or_else(|| panic!("`count fault kind` expected, not {line}"))
            };
            let (count, fault, kind) = (part(), part(), part());
            let count = count
                .parse()
                .unwrap_or_else(|error| panic!("{line}: {error}"));
            ((kind.to_owned(), fault.to_owned()), count)
        });
        Ok(Self(known.collect()))
    }

    pub fn count(&self, kind: &str, fault: Fault) -> usize {
        let key = (kind.to_owned(), fault.word().to_owned());
        self.0.get(&key).copied().unwrap_or(0)
    }

    /// Returns the listed faults that were found less often.
    pub fn outdated(&self, counts: &Counts) -> Vec<String> {
        let found = |kind: &str, fault: &str| {
            let found = counts
                .iter()
                .find(|((of, it), _)| *of == kind && it.word() == fault);
            found.map_or(0, |(_, count)| *count)
        };
        let known = self
            .0
            .iter()
            .map(|((kind, fault), count)| (kind, fault, count, found(kind, fault)));
        known
            .filter(|(_, _, count, found)| found < count)
            .map(|(kind, fault, count, found)| {
                format!("{kind}: {fault}: {found}, no longer {count}")
            })
            .collect()
    }

    pub fn write(counts: &Counts) -> io::Result<()> {
        let mut text = String::from(
            "# Shortcomings that are known: how many mutants of a kind of edit have them in the run of the suite.\n\
             # `PGFLOW_MUTANTS_KNOWN=overwrite` writes what is found now; the counts are to shrink.\n",
        );
        for ((kind, fault), count) in counts {
            // Writing to a string does not fail.
            let _ = writeln!(text, "{count} {fault} {kind}");
        }
        fs::write(Self::path(), text)
    }
}
