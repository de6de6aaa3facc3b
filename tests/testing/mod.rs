//! The tools with which users test their flows: runs without a worker, steps without a database,
//! and diagrams.

mod branches;
mod diagrams;
mod end_steps;
mod failures;
mod guide;
mod interruptions;
mod others;
mod plain;
mod step_queues;
mod steps;

use pgflow::testing::{AttemptOutcome, TaskReport};
use sqlx::PgPool;

use crate::support::invariants::assert_invariants;

/// Asserts the state that any call of `run_to_end` must leave: no worker that has not stopped, no
/// function out of service, and consistent rows.
async fn assert_nothing_left(pool: &PgPool) {
    let (workers, functions): (i64, i64) = sqlx::query_as(
        "select (select count(*) from pgflow.workers where stopped_at is null), \
                (select count(*) from pgflow.worker_functions where not enabled)",
    )
    .fetch_one(pool)
    .await
    .expect("workers can be counted");
    assert_eq!((workers, functions), (0, 0), "workers and functions left");
    assert_invariants(pool).await;
}

#[test]
fn the_guide_shows_the_tests_that_are_run_here() {
    let (guide, tests) = (
        include_str!("../../docs/testing.md"),
        include_str!("guide.rs"),
    );
    assert!(
        guide.contains(&format!("```rust\n{tests}```\n")),
        "docs/testing.md does not show tests/testing/guide.rs as it is"
    );
}

/// The outcomes of a task's attempts, in their order.
fn outcomes(task: &TaskReport) -> Vec<&AttemptOutcome> {
    let numbers: Vec<i32> = task.attempts.iter().map(|it| it.attempt).collect();
    let counted: Vec<i32> = (1..).take(task.attempts.len()).collect();
    assert_eq!(numbers, counted, "attempts are counted from 1");
    task.attempts.iter().map(|it| &it.outcome).collect()
}
