//! The figures of pgflow for TypeScript relative to the floor that was measured beside it.

use crate::{floor::Floor, work::Work};

/// PGMQ on the machine and the day of [`TASKS_PER_SECOND`]: as here, 4 connections and batches of
/// ten.
pub(crate) const FLOOR: Floor = Floor {
    send: 11_145.0,
    read_delete: 5_335.0,
};

/// Version 0.14.1: its SQL core, driven by a native client with the defaults of its worker (ten
/// tasks at a time, batches of ten). Two shared cores, Postgres 15, `shared_buffers` of 1 GB,
/// durable commits, handlers that do nothing.
pub(crate) const TASKS_PER_SECOND: [(Work, f64); 4] = [
    (Work::OneStep, 250.0),
    (Work::ThreeSteps, 229.0),
    (Work::Fan, 188.0),
    (Work::Map, 120.0),
];
