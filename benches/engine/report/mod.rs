//! The results: records, and their presentation.

mod figures;
mod json;
mod ratios;
mod spread;
mod table;

use std::fmt::Write;

use serde::Serialize;

use crate::{load::Load, variant::Variant};

pub(crate) use json::{About, write};

/// One measurement in one repetition.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Record {
    /// Records of a kind have the same figures, and so a table.
    pub(crate) kind: &'static str,
    pub(crate) scenario: String,
    /// Tells the measurements of a scenario apart.
    pub(crate) what: String,
    pub(crate) variant: Option<Variant>,
    pub(crate) repetition: u32,
    /// The same in each repetition.
    pub(crate) counts: Vec<(&'static str, usize)>,
    pub(crate) figures: Vec<Figure>,
    /// All that was sampled, by phase.
    pub(crate) loads: Vec<(&'static str, Load)>,
}

#[derive(Debug, Clone, Serialize)]
pub(crate) struct Figure {
    pub(crate) name: String,
    /// `None`: it can't be told here, or does not apply.
    pub(crate) value: Option<f64>,
    /// Shown with the least and the greatest value, and in ratios.
    #[serde(skip)]
    pub(crate) main: bool,
}

impl Figure {
    fn main(name: impl Into<String>, value: impl Into<Option<f64>>) -> Self {
        Self {
            main: true,
            ..Self::of(name, value)
        }
    }

    fn of(name: impl Into<String>, value: impl Into<Option<f64>>) -> Self {
        Self {
            name: name.into(),
            value: value.into(),
            main: false,
        }
    }
}

/// The same measurement in all repetitions.
#[derive(Debug)]
struct Group<'a>(Vec<&'a Record>);

impl<'a> Group<'a> {
    /// In the order in which they were first measured.
    fn all(records: &'a [Record]) -> Vec<Self> {
        let mut groups: Vec<Self> = Vec::new();
        for record in records {
            match groups.iter_mut().find(|group| group.is_of(record)) {
                Some(group) => group.0.push(record),
                None => groups.push(Self(vec![record])),
            }
        }
        groups
    }

    fn is_of(&self, record: &Record) -> bool {
        let first = self.first();
        first.kind == record.kind
            && first.scenario == record.scenario
            && first.what == record.what
            && first.variant == record.variant
    }

    fn first(&self) -> &'a Record {
        self.0[0]
    }

    /// The n-th figure in all repetitions; `None` when one of them does not know it.
    fn spread(&self, figure: usize) -> Option<spread::Spread> {
        let values: Option<Vec<f64>> = self
            .0
            .iter()
            .map(|record| record.figures[figure].value)
            .collect();
        spread::Spread::of(values?)
    }
}

/// All tables, of the median of all repetitions, and the ratios between variants.
pub(crate) fn show(records: &[Record]) -> String {
    let groups = Group::all(records);
    let mut kinds: Vec<&str> = Vec::new();
    for group in &groups {
        if !kinds.contains(&group.first().kind) {
            kinds.push(group.first().kind);
        }
    }
    let mut text = String::new();
    for kind in kinds {
        let of_kind: Vec<&Group<'_>> = groups
            .iter()
            .filter(|group| group.first().kind == kind)
            .collect();
        let _ = write!(text, "\n{kind}\n{}", table::of(&of_kind));
        let ratios = ratios::of(&of_kind);
        if !ratios.is_empty() {
            let ratios = table::aligned(&ratios);
            let _ = write!(text, "\n{kind}: ratios of medians\n{ratios}");
        }
    }
    text
}
