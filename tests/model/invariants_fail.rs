//! Each invariant notices what breaks it: real states, tampered with.

use std::sync::Arc;

use serde_json::json;

use super::call::{Call, Completion, Failure, TaskKey};
use super::driver::Driver;
use super::flow::{Flow, Mode, Step};
use super::generator::Case;
use super::invariants::check;
use super::rows::{RunRow, StepRow, TaskRow};
use super::setup::prepare;
use super::snapshot::Snapshot;
use crate::support::TestDb;
use crate::support::invariants::assert_invariants;

fn step(slug: &str, deps: &[usize], when_exhausted: Mode) -> Step {
    Step {
        slug: slug.to_owned(),
        is_map: false,
        deps: deps.to_vec(),
        required: None,
        forbidden: None,
        when_unmet: Mode::Skip,
        when_exhausted,
        is_tolerant: false,
        max_attempts: Some(1),
        base_delay: None,
        timeout: None,
        start_delay: None,
    }
}

/// Roots that complete (0), are skipped (1), and run on or fail (2); one waits for 2.
fn case() -> Case {
    let steps = vec![
        step("a", &[], Mode::Fail),
        step("b", &[], Mode::Skip),
        step("c", &[], Mode::Fail),
        step("d", &[2], Mode::Fail),
    ];
    let flow = Flow {
        steps,
        max_attempts: 1,
        base_delay: 0,
        timeout: 1000,
        own_queues: false,
    };
    Case {
        flow,
        inputs: Vec::new(),
        actions: Vec::new(),
    }
}

fn task(run: usize, step: usize) -> TaskKey {
    TaskKey {
        run,
        step,
        index: 0,
    }
}

fn completion(task: TaskKey) -> Call {
    Call::CompleteOne(Completion {
        task,
        attempt: None,
        output: Some(json!(1)),
    })
}

fn failure(task: TaskKey) -> Call {
    Call::Fail(Failure {
        task,
        attempt: None,
        message: "no".to_owned(),
        retry_delay: None,
        retryable: true,
    })
}

/// A call, with the states before and after it.
type Moment = (Call, Snapshot, Snapshot);

/// Run 0 continues, its steps 0 and 1 have ended; run 1 has failed last.
async fn moments(driver: &mut Driver<'_>) -> Vec<Moment> {
    let start = || Call::Start { input: json!({}) };
    let claim = Call::Claim { worker: 0, max: 6 };
    let mut moments = Vec::new();
    for call in [
        start(),
        start(),
        claim,
        completion(task(0, 0)),
        failure(task(0, 1)),
        failure(task(1, 2)),
    ] {
        let before = driver.state.clone();
        driver.perform(call.clone()).await.expect("all is well");
        moments.push((call, before, driver.state.clone()));
    }
    moments
}

fn run(state: &mut Snapshot, number: usize) -> &mut RunRow {
    Arc::make_mut(state.runs.get_mut(&number).expect("it is there"))
}

fn step_of(state: &mut Snapshot, run: usize, step: usize) -> &mut StepRow {
    Arc::make_mut(state.steps.get_mut(&(run, step)).expect("it is there"))
}

fn task_of(state: &mut Snapshot, run: usize, step: usize) -> &mut TaskRow {
    Arc::make_mut(state.tasks.get_mut(&task(run, step)).expect("it is there"))
}

fn set(text: &mut String, value: &str) {
    value.clone_into(text);
}

/// A change of the snapshots before and after the last call.
type Tampering = fn(&mut Snapshot, &mut Snapshot);

const TAMPERINGS: [(&str, Tampering); 21] = [
    ("I1", |_, after| {
        set(&mut task_of(after, 1, 0).status, "queued");
    }),
    ("I2", |_, after| {
        set(&mut task_of(after, 0, 1).status, "started");
    }),
    ("I3", |_, after| {
        set(&mut task_of(after, 0, 2).status, "cancelled");
    }),
    ("I3", |_, after| {
        set(&mut step_of(after, 1, 2).status, "started");
    }),
    ("I3", |_, after| run(after, 1).error = None),
    ("I4", |_, after| after.live.clear()),
    ("I4", |_, after| {
        set(&mut task_of(after, 0, 2).queue, "other");
    }),
    ("I4", |_, after| after.archived.extend([(1, 1)])),
    ("I4", |_, after| task_of(after, 0, 1).message = None),
    ("I5", |_, after| run(after, 0).remaining_steps = 1),
    ("I5", |_, after| step_of(after, 0, 3).remaining_deps = 0),
    ("I5", |_, after| {
        step_of(after, 0, 2).remaining_tasks = Some(0);
    }),
    ("I5", |_, after| {
        step_of(after, 0, 2).initial_tasks = Some(2);
    }),
    ("I6", |_, after| step_of(after, 0, 0).output = None),
    ("I6", |_, after| task_of(after, 0, 0).attempts = 2),
    ("I6", |before, _| {
        set(&mut run(before, 1).status, "failed");
    }),
    ("I6", |_, after| after.events.clear()),
    ("I6", |_, after| after.events.extend(after.events.clone())),
    ("I7", |_, after| run(after, 1).failed_at = Some(0)),
    ("I7", |_, after| step_of(after, 0, 0).created_at = 0),
    ("I8", |_, after| task_of(after, 0, 2).attempts = 2),
];

#[tokio::test]
async fn each_invariant_notices_what_breaks_it() {
    let db = TestDb::new().await;
    prepare(&db.pool)
        .await
        .expect("the database can be prepared");
    let mut connection = db.pool.acquire().await.expect("a connection");
    let case = case();
    let driver = Driver::new(&mut connection, &case).await;
    let mut driver = driver.expect("the flow can be defined");
    let moments = moments(&mut driver).await;
    for (call, before, after) in &moments {
        assert_eq!(check(&case.flow, before, after, call), Ok(()), "{call}");
    }
    let (call, before, after) = moments.last().expect("there are some");
    for (place, (invariant, tamper)) in TAMPERINGS.iter().enumerate() {
        let (mut before, mut after) = (before.clone(), after.clone());
        tamper(&mut before, &mut after);
        let broken = check(&case.flow, &before, &after, call);
        let broken = broken.expect_err(&format!("tampering {place} breaks {invariant}"));
        assert!(
            broken.starts_with(&format!("invariant {invariant}:")),
            "tampering {place} breaks {invariant}: {broken}"
        );
    }
    // An attempt that nobody claimed.
    let (_, before, after) = &moments[2];
    let broken = check(&case.flow, before, after, &Call::Recover);
    assert!(broken.is_err_and(|broken| broken.starts_with("invariant I8:")));
    assert_invariants(&db.pool).await;
}
