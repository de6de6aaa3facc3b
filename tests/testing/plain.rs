//! Flows whose every step succeeds.

use std::sync::Mutex;

use pgflow::client::{RunStatus, StepStatus};
use pgflow::prelude::*;
use pgflow::testing::{AttemptOutcome, TaskStatus, run_to_end};

use super::{assert_nothing_left, outcomes};
use crate::support::TestDb;

#[derive(Default)]
struct Notes(Mutex<Vec<String>>);

impl Notes {
    fn add(&self, note: String) {
        self.0.lock().unwrap().push(note);
    }

    fn taken(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

struct Squares;

#[flow(input = Vec<u32>, state = Notes, output_derive = [Debug, PartialEq])]
impl Squares {
    #[step]
    async fn check(input: &[u32]) -> StepResult<usize> {
        Ok(input.len())
    }

    #[step(map = input)]
    async fn square(item: u32, ctx: &StepContext, state: &Notes) -> StepResult<u32> {
        state.add(format!("{} at {}", item, ctx.task_index()));
        Ok(item * item)
    }

    #[step(depends_on = [check, square])]
    async fn sum(check: usize, square: &[u32], input: &[u32]) -> StepResult<u32> {
        assert_eq!((check, square.len()), (input.len(), input.len()));
        Ok(square.iter().sum())
    }

    #[step(map = square)]
    async fn half(item: u32, ctx: &StepContext) -> StepResult<u32> {
        assert_eq!((ctx.attempt(), ctx.read_count()), (1, 1));
        assert_eq!(ctx.flow_slug(), "squares");
        Ok(item / 2)
    }
}

#[tokio::test]
async fn a_run_returns_its_output_and_tells_of_every_task() {
    let db = TestDb::new().await;
    let notes = Notes::default();
    let run = run_to_end::<Squares>(&db.pool, &notes, vec![2, 4, 6])
        .await
        .unwrap();

    assert!(run.error().is_none());
    assert_eq!(run.snapshot().status(), RunStatus::Completed);
    let square = run.snapshot().step(Step::Square).unwrap();
    assert_eq!(square.status, StepStatus::Completed);
    let tasks: Vec<(&str, i32)> = run
        .tasks()
        .iter()
        .map(|task| (task.step_slug, task.task_index))
        .collect();
    assert_eq!(
        tasks,
        [
            ("check", 0),
            ("square", 0),
            ("square", 1),
            ("square", 2),
            ("sum", 0),
            ("half", 0),
            ("half", 1),
            ("half", 2)
        ]
    );
    for task in run.tasks() {
        assert_eq!(task.status, TaskStatus::Completed);
        assert_eq!(outcomes(task), [&AttemptOutcome::Returned]);
        assert_eq!(task.error_message, None);
    }
    assert_eq!(run.tasks_of(Step::Square).len(), 3);
    assert_eq!(run.task(Step::Half, 2).unwrap().task_index, 2);
    assert_eq!(run.task(Step::Half, 3), None);

    let mut seen = notes.taken();
    seen.sort();
    assert_eq!(seen, ["2 at 0", "4 at 1", "6 at 2"]);
    let output = run.into_output().unwrap();
    assert_eq!((output.sum, output.half), (56, vec![2, 8, 18]));
    assert_nothing_left(&db.pool).await;
}

#[tokio::test]
async fn an_empty_list_has_no_tasks() {
    let db = TestDb::new().await;
    let run = run_to_end::<Squares>(&db.pool, &Notes::default(), vec![])
        .await
        .unwrap();
    assert_eq!(run.tasks_of(Step::Square), []);
    assert_eq!(run.tasks_of(Step::Sum).len(), 1);
    assert_eq!(run.output().unwrap().sum, 0);
    assert_nothing_left(&db.pool).await;
}

#[tokio::test]
async fn more_tasks_than_slots_all_run_and_one_at_a_time_in_their_order() {
    let db = TestDb::new().await;
    let notes = Notes::default();
    let input: Vec<u32> = (0..35).collect();
    let run = run_to_end::<Squares>(&db.pool, &notes, input.clone())
        .await
        .unwrap();
    assert_eq!(run.tasks_of(Step::Square).len(), 35);
    notes.taken();

    let run = run_to_end::<Squares>(&db.pool, &notes, input.clone())
        .concurrency(1)
        .await
        .unwrap();
    assert_eq!(run.tasks_of(Step::Square).len(), 35);
    let in_order: Vec<String> = input.iter().map(|n| format!("{n} at {n}")).collect();
    assert_eq!(notes.taken(), in_order);
    assert_nothing_left(&db.pool).await;
}

struct Rendezvous;

#[flow(input = u32, state = tokio::sync::Barrier, timeout = "20s", max_attempts = 1, step_enum = MeetStep)]
impl Rendezvous {
    #[step]
    async fn list(input: u32) -> StepResult<Vec<u32>> {
        Ok((0..input).collect())
    }

    /// Ends when as many run as the barrier has places.
    #[step(map = list)]
    async fn meet(item: u32, state: &tokio::sync::Barrier) -> StepResult<u32> {
        state.wait().await;
        Ok(item)
    }
}

#[tokio::test]
async fn handlers_run_side_by_side() {
    let db = TestDb::new().await;
    let barrier = tokio::sync::Barrier::new(10);
    let run = run_to_end::<Rendezvous>(&db.pool, &barrier, 10)
        .await
        .unwrap();
    assert_eq!(run.into_output().unwrap().meet.len(), 10);
    assert_nothing_left(&db.pool).await;
}
