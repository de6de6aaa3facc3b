//! Attempts that fail. No test here waits for a delay: the shortest would take longer than all of
//! them.

use std::time::Duration;

use pgflow::client::{RunError, RunStatus};
use pgflow::prelude::*;
use pgflow::testing::{AttemptOutcome, EndedRun, TaskStatus, run_to_end};

use super::{assert_nothing_left, outcomes};
use crate::support::TestDb;

/// Fails as its input says.
struct Trouble;

#[flow(input = String, base_delay = "1h", max_attempts = 3, timeout = "3s")]
impl Trouble {
    #[step]
    async fn act(input: &str, ctx: &StepContext) -> anyhow::Result<String> {
        let first = ctx.attempt() == 1;
        assert_eq!(ctx.read_count(), ctx.attempt());
        match input {
            "error" => anyhow::bail!("nothing works"),
            "error once" if first => anyhow::bail!("once"),
            "panic once" if first => panic!("the handler's own words"),
            "hang once" if first => std::future::pending().await,
            "permanent" => {
                let error = StepError::permanent("no such page");
                return Err(anyhow::Error::from(error).context("reading"));
            }
            "limited" if first => {
                let cause = RetryAfter::new(Duration::from_mins(30), "too many requests");
                return Err(anyhow::Error::new(cause).context("reading"));
            }
            "unstorable" => return Ok("a\0b".to_owned()),
            _ => {}
        }
        Ok("done".to_owned())
    }

    #[step(depends_on = [act])]
    async fn after(act: &str) -> StepResult<String> {
        Ok(format!("after {act}"))
    }
}

async fn run(db: &TestDb, input: &str) -> EndedRun<Trouble> {
    let run = run_to_end::<Trouble>(&db.pool, &(), input.to_owned()).await;
    let run = run.unwrap();
    assert_nothing_left(&db.pool).await;
    run
}

fn failed(message: &str) -> AttemptOutcome {
    AttemptOutcome::Failed {
        message: message.to_owned(),
        retry_after: None,
        is_permanent: false,
    }
}

#[tokio::test]
async fn a_run_that_fails_has_ended_and_says_why() {
    let db = TestDb::new().await;
    let run = run(&db, "error").await;
    assert!(run.output().is_none());
    assert_eq!(run.snapshot().status(), RunStatus::Failed);
    let task = run.task(Step::Act, 0).unwrap();
    assert_eq!(task.status, TaskStatus::Failed);
    assert_eq!(task.error_message.as_deref(), Some("nothing works"));
    let error = failed("nothing works");
    assert_eq!(outcomes(task), [&error, &error, &error]);
    assert_eq!(run.tasks_of(Step::After), []);
    match run.into_output().map(|_| ()).unwrap_err() {
        RunError::Failed { step, message, .. } => {
            assert_eq!((step.as_deref(), &*message), (Some("act"), "nothing works"));
        }
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn a_retry_is_not_waited_for() {
    let db = TestDb::new().await;
    let run = run(&db, "error once").await;
    assert_eq!(run.output().unwrap().after, "after done");
    let task = run.task(Step::Act, 0).unwrap();
    assert_eq!(outcomes(task), [&failed("once"), &AttemptOutcome::Returned]);
    assert_eq!(task.errors(), ["once"]);
    assert_eq!(task.status, TaskStatus::Completed);
}

#[tokio::test]
async fn a_panic_is_a_failed_attempt() {
    let db = TestDb::new().await;
    let run = run(&db, "panic once").await;
    let task = run.task(Step::Act, 0).unwrap();
    assert_eq!(
        task.errors(),
        ["the handler panicked: the handler's own words"]
    );
    assert!(run.output().is_some());
}

#[tokio::test]
async fn a_timeout_applies_in_real_time() {
    let db = TestDb::new().await;
    let run = run(&db, "hang once").await;
    let task = run.task(Step::Act, 0).unwrap();
    assert_eq!(
        task.errors(),
        ["the attempt timed out after 3 s; raise the step's `timeout`, or do less in one task"]
    );
    assert!(run.output().is_some());
}

#[tokio::test]
async fn a_chosen_delay_is_reported_and_not_waited_for() {
    let db = TestDb::new().await;
    let run = run(&db, "limited").await;
    let limited = AttemptOutcome::Failed {
        message: "reading: too many requests".to_owned(),
        retry_after: Some(Duration::from_mins(30)),
        is_permanent: false,
    };
    let task = run.task(Step::Act, 0).unwrap();
    assert_eq!(outcomes(task), [&limited, &AttemptOutcome::Returned]);
}

#[tokio::test]
async fn a_permanent_error_has_one_attempt() {
    let db = TestDb::new().await;
    let run = run(&db, "permanent").await;
    let permanent = AttemptOutcome::Failed {
        message: "reading: no such page".to_owned(),
        retry_after: None,
        is_permanent: true,
    };
    let task = run.task(Step::Act, 0).unwrap();
    assert_eq!(outcomes(task), [&permanent]);
    assert_eq!(task.status, TaskStatus::Failed);
}

#[tokio::test]
async fn an_output_that_can_not_be_stored_is_a_failed_attempt() {
    let db = TestDb::new().await;
    let run = run(&db, "unstorable").await;
    let [error] = run.task(Step::Act, 0).unwrap().errors()[..] else {
        panic!("{run:?}");
    };
    assert!(error.contains("U+0000"), "{error}");
}

/// One element fails the run while another one hangs.
struct Race;

#[flow(input = Vec<u32>, max_attempts = 1, timeout = "1h", step_enum = RaceStep)]
impl Race {
    #[step(map = input)]
    async fn race(item: u32, ctx: StepContext) -> StepResult<()> {
        if item == 0 {
            Err("lost")?;
        }
        let token = ctx.cancellation_token();
        tokio::spawn(async move { token.cancelled().await });
        std::future::pending().await
    }
}

#[tokio::test]
async fn a_handler_that_still_runs_when_the_run_ends_is_dropped() {
    let db = TestDb::new().await;
    let run = run_to_end::<Race>(&db.pool, &(), vec![1, 0, 2]);
    let run = run.await.unwrap();
    let statuses: Vec<TaskStatus> = run.tasks().iter().map(|task| task.status).collect();
    assert_eq!(
        statuses,
        [
            TaskStatus::Cancelled,
            TaskStatus::Failed,
            TaskStatus::Cancelled
        ]
    );
    assert_eq!(outcomes(&run.tasks()[0]), [&AttemptOutcome::Dropped]);
    assert_eq!(outcomes(&run.tasks()[1]), [&failed("lost")]);
    assert_nothing_left(&db.pool).await;
}

#[tokio::test]
async fn tasks_that_were_never_claimed_have_no_attempts() {
    let db = TestDb::new().await;
    let run = run_to_end::<Race>(&db.pool, &(), vec![0, 1]).concurrency(1);
    let run = run.await.unwrap();
    assert_eq!(run.tasks()[1].status, TaskStatus::Cancelled);
    assert_eq!(run.tasks()[1].attempts, []);
    assert_nothing_left(&db.pool).await;
}

/// Time passes only when nothing else can happen.
struct Delays;

#[flow(input = (), state = std::sync::Mutex<Vec<String>>, base_delay = "10m", step_enum = DelayStep)]
impl Delays {
    #[step(start_delay = "1h")]
    async fn late(state: &std::sync::Mutex<Vec<String>>) -> StepResult<()> {
        note(state, "late");
        Ok(())
    }

    #[step]
    async fn soon(
        ctx: &StepContext,
        state: &std::sync::Mutex<Vec<String>>,
    ) -> StepResult<Vec<u32>> {
        note(state, "soon");
        if ctx.attempt() == 1 {
            Err("again")?;
        }
        Ok(vec![1, 2])
    }

    #[step]
    async fn now(state: &std::sync::Mutex<Vec<String>>) -> StepResult<()> {
        tokio::task::yield_now().await;
        note(state, "now");
        Ok(())
    }

    #[step(depends_on = [now])]
    async fn then(state: &std::sync::Mutex<Vec<String>>) -> StepResult<()> {
        note(state, "then");
        Ok(())
    }
}

fn note(state: &std::sync::Mutex<Vec<String>>, what: &str) {
    state.lock().unwrap().push(what.to_owned());
}

/// Returns the executed tasks in their order.
async fn order_of_delays(concurrency: usize) -> Vec<String> {
    let db = TestDb::new().await;
    let order = std::sync::Mutex::default();
    run_to_end::<Delays>(&db.pool, &order, ())
        .concurrency(concurrency)
        .await
        .unwrap()
        .into_output()
        .unwrap();
    assert_nothing_left(&db.pool).await;
    order.into_inner().unwrap()
}

#[tokio::test]
async fn what_is_delayed_comes_after_what_is_not_and_the_shorter_delay_first() {
    assert_eq!(
        order_of_delays(1).await,
        ["now", "soon", "then", "soon", "late"]
    );
}

#[tokio::test]
async fn free_slots_do_not_make_time_pass() {
    let mut order = order_of_delays(10).await;
    order[..2].sort();
    assert_eq!(order, ["now", "soon", "then", "soon", "late"]);
}
