//! All that was measured.

use serde_json::{Value, json};

use crate::{
    conditions::Conditions, contestants::Entry, floor::Floor, load::Load, measure::Sample,
    spread::Spread,
};

/// A contestant and its repetitions.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) entry: &'static Entry,
    pub(crate) samples: Vec<Sample>,
}

impl Row {
    fn spread(&self, figure: impl Fn(&Sample) -> Option<f64>) -> Option<Spread> {
        let figures: Option<Vec<f64>> = self.samples.iter().map(figure).collect();
        Spread::of(figures?)
    }

    pub(crate) fn tasks_per_second(&self) -> Option<Spread> {
        self.spread(|sample| Some(f64::from(sample.tasks) / sample.load.seconds))
    }

    pub(crate) fn jobs_per_second(&self) -> Option<Spread> {
        self.spread(|sample| Some(f64::from(sample.jobs) / sample.load.seconds))
    }

    /// Of something that a sample may not know.
    pub(crate) fn per_task(&self, figure: impl Fn(&Load) -> Option<f64>) -> Option<Spread> {
        self.spread(|sample| Some(figure(&sample.load)? / f64::from(sample.tasks)))
    }
}

#[derive(Debug)]
pub(crate) struct Results {
    pub(crate) rows: Vec<Row>,
    pub(crate) floors: Vec<Floor>,
}

impl Results {
    pub(crate) fn new(entries: &[&'static Entry]) -> Self {
        let rows = entries.iter().map(|&entry| Row {
            entry,
            samples: Vec::new(),
        });
        Self {
            rows: rows.collect(),
            floors: Vec::new(),
        }
    }

    /// Medians of the floors, each for itself.
    pub(crate) fn floor(&self) -> Option<Floor> {
        let median = |of: fn(&Floor) -> f64| Some(Spread::of(self.floors.iter().map(of))?.median);
        Some(Floor {
            send: median(|floor| floor.send)?,
            read_delete: median(|floor| floor.read_delete)?,
        })
    }

    /// Returns the figures that could not be measured, with the reasons.
    pub(crate) fn notes(&self) -> Vec<&str> {
        let samples = self.rows.iter().flat_map(|row| &row.samples);
        let mut notes: Vec<&str> = samples
            .flat_map(|sample| sample.notes.iter().map(String::as_str))
            .collect();
        notes.sort_unstable();
        notes.dedup();
        notes
    }

    pub(crate) fn as_json(&self, conditions: &Conditions) -> Value {
        let contestants: Vec<Value> = self
            .rows
            .iter()
            .map(|row| {
                json!({
                    "name": row.entry.name,
                    "package": row.entry.package,
                    "work": row.entry.work.to_string(),
                    "settings": row.entry.settings,
                    "tasks_per_second": row.tasks_per_second(),
                    "samples": row.samples,
                })
            })
            .collect();
        json!({
            "conditions": conditions,
            "contestants": contestants,
            "pgmq_floors": self.floors,
            "notes": self.notes(),
        })
    }
}
