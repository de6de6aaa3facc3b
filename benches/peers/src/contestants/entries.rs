//! The rows of the table.

use std::{future::Future, pin::Pin};

use super::{apalis::Apalis, graphile::Graphile, pgflow::Pgflow, underway::Underway};
use crate::{
    Result, flows,
    measure::{Sample, measure},
    options::Options,
    server::Server,
    work::Work,
};

type Measuring<'a> = Pin<Box<dyn Future<Output = Result<Sample>> + 'a>>;

/// A contestant, its work and its settings.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    pub(crate) name: &'static str,
    /// The crate, whose version stands in the lock file.
    pub(crate) package: &'static str,
    pub(crate) work: Work,
    pub(crate) settings: &'static str,
    measure: for<'a> fn(&'a Server, &'a Options, &'a Entry) -> Measuring<'a>,
}

impl Entry {
    pub(crate) fn measure<'a>(&'a self, server: &'a Server, options: &'a Options) -> Measuring<'a> {
        (self.measure)(server, options, self)
    }

    pub(crate) fn is_ours(&self) -> bool {
        self.package == OURS
    }
}

const OURS: &str = "pgflow";

/// All rows, ours first.
pub(crate) const ENTRIES: [Entry; 13] = [
    Entry {
        name: "pgflow one",
        package: OURS,
        work: Work::OneStep,
        settings: "defaults",
        measure: |s, o, e| {
            let contestant = Pgflow::<flows::One>::new(|job| job);
            Box::pin(measure(contestant, s, o, e))
        },
    },
    Entry {
        name: "pgflow one, 100 at a time",
        package: OURS,
        work: Work::OneStep,
        settings: "concurrency(100)",
        measure: |s, o, e| {
            let contestant = Pgflow::<flows::One>::new(|job| job).concurrency(100);
            Box::pin(measure(contestant, s, o, e))
        },
    },
    Entry {
        name: "graphile_worker, polling",
        package: "graphile_worker",
        work: Work::OneStep,
        settings: "poll_interval 1 ms, as a slot takes one job at each tick",
        measure: |s, o, e| Box::pin(measure(Graphile::polling(), s, o, e)),
    },
    Entry {
        name: "graphile_worker, local queue",
        package: "graphile_worker",
        work: Work::OneStep,
        settings: "local_queue of its default size, 100",
        measure: |s, o, e| Box::pin(measure(Graphile::local_queue(), s, o, e)),
    },
    Entry {
        name: "graphile_worker, local queue + batched completion",
        package: "graphile_worker",
        work: Work::OneStep,
        settings: "local_queue of 100, complete_job_batch_delay and fail_job_batch_delay 5 ms",
        measure: |s, o, e| Box::pin(measure(Graphile::batched(), s, o, e)),
    },
    Entry {
        name: "apalis-postgres, batch of 10",
        package: "apalis-postgres",
        work: Work::OneStep,
        settings: "batch_size(10), lock_tasks(false), parallelize(tokio::spawn)",
        measure: |s, o, e| Box::pin(measure(Apalis::batch_of(10), s, o, e)),
    },
    Entry {
        name: "apalis-postgres, batch of 100",
        package: "apalis-postgres",
        work: Work::OneStep,
        settings: "batch_size(100), lock_tasks(false), parallelize(tokio::spawn)",
        measure: |s, o, e| Box::pin(measure(Apalis::batch_of(100), s, o, e)),
    },
    Entry {
        name: "underway",
        package: "underway",
        work: Work::OneStep,
        settings: "as many workers as handlers at a time",
        measure: |s, o, e| Box::pin(measure(Underway::one_step(), s, o, e)),
    },
    Entry {
        name: "pgflow chain3",
        package: OURS,
        work: Work::ThreeSteps,
        settings: "defaults",
        measure: |s, o, e| {
            let contestant = Pgflow::<flows::Chain3>::new(|job| job);
            Box::pin(measure(contestant, s, o, e))
        },
    },
    Entry {
        name: "pgflow chain3, 100 at a time",
        package: OURS,
        work: Work::ThreeSteps,
        settings: "concurrency(100)",
        measure: |s, o, e| {
            let contestant = Pgflow::<flows::Chain3>::new(|job| job).concurrency(100);
            Box::pin(measure(contestant, s, o, e))
        },
    },
    Entry {
        name: "underway, 3 steps",
        package: "underway",
        work: Work::ThreeSteps,
        settings: "as many workers as handlers at a time",
        measure: |s, o, e| Box::pin(measure(Underway::three_steps(), s, o, e)),
    },
    Entry {
        name: "pgflow fan50",
        package: OURS,
        work: Work::Fan,
        settings: "defaults",
        measure: |s, o, e| {
            let contestant = Pgflow::<flows::Fan50>::new(|job| job);
            Box::pin(measure(contestant, s, o, e))
        },
    },
    Entry {
        name: "pgflow map10k",
        package: OURS,
        work: Work::Map,
        settings: "defaults",
        measure: |s, o, e| {
            let contestant =
                Pgflow::<flows::Map>::new(|_| (0..u64::from(Work::ELEMENTS)).collect());
            Box::pin(measure(contestant, s, o, e))
        },
    },
];
