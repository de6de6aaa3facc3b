//! From what was measured to the figures of a table.

use super::{Figure, Record, spread::quantile};
use crate::{
    floor::Floor, latency::Latency, load::Load, start::Starts, starvation::Starvation,
    throughput::Throughput, variant::Variant,
};

impl Record {
    fn new(kind: &'static str, scenario: impl Into<String>, repetition: u32) -> Self {
        Self {
            kind,
            scenario: scenario.into(),
            what: String::new(),
            variant: None,
            repetition,
            counts: Vec::new(),
            figures: Vec::new(),
            loads: Vec::new(),
        }
    }

    pub(crate) fn throughput(
        scenario: String,
        variant: Variant,
        repetition: u32,
        workers: u32,
        measured: Throughput,
        floor: &Floor,
    ) -> Self {
        let seconds = measured.work.seconds;
        let per_second = float(measured.tasks) / seconds;
        let started = measured.start.as_ref();
        let mut figures = vec![
            Figure::of(
                "started/s",
                started.map(|load| float(measured.runs) / load.seconds),
            ),
            Figure::main("tasks/s", per_second),
            Figure::of("runs/s", float(measured.runs) / seconds),
            Figure::of("x floor", per_second / floor.all),
        ];
        figures.extend(per_unit(&measured.work, measured.tasks, "task"));
        let mut loads = vec![("work", measured.work)];
        loads.extend(measured.start.map(|load| ("start", load)));
        Self {
            variant: Some(variant),
            counts: vec![
                ("workers", workers as usize),
                ("runs", measured.runs),
                ("tasks", measured.tasks),
            ],
            figures,
            loads,
            ..Self::new("throughput", scenario, repetition)
        }
    }

    pub(crate) fn floor(repetition: u32, floor: &Floor) -> Self {
        let mut figures = vec![
            Figure::of("send/s", floor.send),
            Figure::of("read+archive/s", floor.read_archive),
            Figure::main("all three/s", floor.all),
            Figure::of("10x4: send/s", floor.send_by_ten),
            Figure::of("10x4: read+delete/s", floor.read_delete_by_ten),
        ];
        let commits = floor.commits.iter();
        figures.extend(commits.map(|(connections, commits)| {
            Figure::of(format!("commits/s by {connections}"), *commits)
        }));
        Self {
            counts: vec![
                ("connections", floor.connections as usize),
                ("batch", floor.batch),
                ("messages", floor.messages),
            ],
            figures,
            ..Self::new("floor", "floor", repetition)
        }
    }

    pub(crate) fn latency(variant: Variant, repetition: u32, latency: Latency) -> Self {
        let mut figures = Vec::new();
        let sources = [
            ("database", &latency.database),
            ("event", &latency.event),
            ("wait", &latency.wait),
        ];
        for (source, milliseconds) in sources {
            for (name, q) in [("p50", 0.5), ("p95", 0.95), ("p99", 0.99)] {
                let name = format!("{source} {name} ms");
                let value = quantile(milliseconds, q);
                figures.push(if q < 0.9 {
                    Figure::main(name, value)
                } else {
                    Figure::of(name, value)
                });
            }
        }
        let seconds = latency.idle.seconds;
        figures.extend([
            Figure::of(
                "idle stmt/s",
                latency.idle.statements.map(|n| signed(n) / seconds),
            ),
            Figure::of("idle xact/s", signed(latency.idle.transactions) / seconds),
            Figure::of(
                "idle worker cores",
                latency.idle_worker_cpu.map(|cpu| cpu / seconds),
            ),
        ]);
        Self {
            variant: Some(variant),
            counts: vec![("runs", latency.runs)],
            figures,
            loads: vec![("idle", latency.idle)],
            ..Self::new("latency", "latency", repetition)
        }
    }

    pub(crate) fn idle(variant: Variant, repetition: u32, load: Load) -> Self {
        let seconds = load.seconds;
        Self {
            variant: Some(variant),
            counts: vec![("workers", 30)],
            figures: vec![
                Figure::main("xact/s", signed(load.transactions) / seconds),
                Figure::main("stmt/s", load.statements.map(|n| signed(n) / seconds)),
                Figure::main("client cores", load.client_cpu.map(|cpu| cpu / seconds)),
                Figure::main("Postgres cores", load.postgres_cpu.map(|cpu| cpu / seconds)),
                Figure::of("WAL B/s", signed(load.wal_bytes) / seconds),
            ],
            loads: vec![("idle", load)],
            ..Self::new("idle", "idle", repetition)
        }
    }

    pub(crate) fn start(what: String, variant: Variant, repetition: u32, starts: Starts) -> Self {
        let mut figures = vec![Figure::main(
            "started/s",
            float(starts.runs) / starts.load.seconds,
        )];
        figures.extend(per_unit(&starts.load, starts.runs, "start"));
        Self {
            what,
            variant: Some(variant),
            counts: vec![("runs", starts.runs)],
            figures,
            loads: vec![("start", starts.load)],
            ..Self::new("start", "start", repetition)
        }
    }

    /// One for each mode, and one for the ratio.
    pub(crate) fn starvation(repetition: u32, starvation: &Starvation) -> Vec<Self> {
        let (shared, own) = (&starvation.one_queue, &starvation.own_queues);
        let rows = [
            ("one queue", shared.p50, shared.p95, shared.tasks_per_second),
            ("a queue per step", own.p50, own.p95, own.tasks_per_second),
            (
                "ratio",
                shared.p50 / own.p50,
                shared.p95 / own.p95,
                shared.tasks_per_second / own.tasks_per_second,
            ),
        ];
        let rows = rows.map(|(what, p50, p95, tasks_per_second)| Self {
            what: what.to_owned(),
            counts: vec![("runs", starvation.runs)],
            figures: vec![
                Figure::main("fast step: p50 ms", p50),
                Figure::main("p95 ms", p95),
                Figure::main("tasks/s", tasks_per_second),
            ],
            ..Self::new("starvation", "starvation", repetition)
        });
        rows.into()
    }
}

fn per_unit(load: &Load, units: usize, unit: &str) -> [Figure; 7] {
    let per = |value: f64| value / float(units);
    let milliseconds = |seconds: Option<f64>| seconds.map(|seconds| per(1e3 * seconds));
    [
        Figure::main(
            format!("Postgres ms/{unit}"),
            milliseconds(load.postgres_cpu),
        ),
        Figure::of(format!("client ms/{unit}"), milliseconds(load.client_cpu)),
        Figure::of(
            format!("stmt/{unit}"),
            load.statements.map(|n| per(signed(n))),
        ),
        Figure::of(format!("xact/{unit}"), per(signed(load.transactions))),
        Figure::of(format!("WAL B/{unit}"), per(signed(load.wal_bytes))),
        Figure::of(format!("dead/{unit}"), per(signed(load.dead_tuples_made()))),
        Figure::of("HOT share", load.hot_share()),
    ]
}

#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
fn float(count: usize) -> f64 {
    count as f64
}

#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
fn signed(count: i64) -> f64 {
    count as f64
}
