//! Attempts that fail, each in its own way; the worker lives on.

use std::{collections::HashMap, time::Duration};

use pgflow::client::{Client, RunError, RunHandle};
use pgflow::inspect::StepReason;
use pgflow::prelude::*;
use serde_json::json;

use super::{DEADLINE, TaskRow, probe::Probe, start, task, until_task_is};
use crate::support::{TestDb, eventually, invariants::assert_invariants};

/// Fails as its input says.
struct Trouble;

#[flow(input = String, state = Probe, base_delay = "1s", max_attempts = 2, timeout = "3s")]
impl Trouble {
    #[step]
    async fn act(
        input: &str,
        state: &Probe,
        ctx: &StepContext,
    ) -> StepResult<HashMap<Vec<u8>, String>> {
        state.note(format!("attempt {}", ctx.attempt()));
        let mut output = HashMap::new();
        match input {
            "panic" => panic!("the handler's own words"),
            "panic once" if ctx.attempt() == 1 => panic!("once"),
            "error" => Err("nothing works")?,
            "permanent" => return Err(StepError::permanent("no such page")),
            "at once" if ctx.attempt() == 1 => {
                return Err(StepError::retry_after(Duration::ZERO, "again"));
            }
            "inside anyhow" => {
                let error = inside_anyhow(RetryAfter::new(
                    Duration::from_millis(7_199_001),
                    "too many requests",
                ));
                return Err(error.into());
            }
            "permanent inside anyhow" => {
                return Err(inside_anyhow(Permanent::new("no such page")).into());
            }
            "too long" => {
                return Err(StepError::retry_after(
                    Duration::from_secs(1 << 31),
                    "gone fishing",
                ));
            }
            "in an hour" => {
                return Err(StepError::retry_after(
                    Duration::from_hours(1),
                    "too many requests",
                ));
            }
            "hang" => {
                let token = ctx.cancellation_token();
                let probe = state.clone();
                tokio::spawn(async move {
                    token.cancelled().await;
                    probe.note("told to stop");
                });
                std::future::pending::<()>().await;
            }
            "unserialisable" => {
                output.insert(vec![1], String::new());
            }
            _ => {}
        }
        Ok(output)
    }
}

/// A marker as it comes out of code that knows nothing of steps.
fn inside_anyhow(marker: impl std::error::Error + Send + Sync + 'static) -> anyhow::Error {
    anyhow::Error::new(marker)
        .context("fetching the index")
        .context("auditing")
}

struct Case {
    database: TestDb,
    worker: pgflow::worker::WorkerHandle,
    probe: Probe,
    run: RunHandle<Trouble>,
}

impl Case {
    async fn new(input: &str) -> Self {
        let database = TestDb::new().await;
        let probe = Probe::open();
        let worker = start::<Trouble>(&database.pool, probe.clone()).await;
        let client = Client::new(database.pool.clone());
        let run = client.start::<Trouble>(&input.to_owned()).await.unwrap();
        Self {
            database,
            worker,
            probe,
            run,
        }
    }

    async fn task(&self) -> TaskRow {
        task(&self.database.pool, self.run.run_id(), Step::Act).await
    }

    /// The message that the run failed with, and the attempts that were made.
    async fn failure(&self) -> (String, i32) {
        match self.run.wait().timeout(DEADLINE).await {
            Err(RunError::Failed { step, message, .. }) => {
                assert_eq!(step.as_deref(), Some("act"));
                let task = self.task().await;
                assert_eq!(task.error_message.as_ref(), Some(&message));
                (message, task.attempts)
            }
            other => panic!("{:?}", other.map(|_| ())),
        }
    }

    async fn succeeds(&self) {
        self.run.wait().timeout(DEADLINE).await.unwrap();
    }

    /// Shows that the worker still works.
    async fn end(self) {
        let client = Client::new(self.database.pool.clone());
        let run = client.start::<Trouble>(&"fine".to_owned()).await.unwrap();
        run.wait().timeout(DEADLINE).await.unwrap();
        self.worker.stop().await.unwrap();
        assert_invariants(&self.database.pool).await;
    }
}

#[tokio::test]
async fn an_error_is_retried_until_attempts_are_exhausted() {
    let case = Case::new("error").await;
    assert_eq!(case.failure().await, ("nothing works".to_owned(), 2));
    assert_eq!(case.probe.seen(), ["attempt 1", "attempt 2"]);
    case.end().await;
}

#[tokio::test]
async fn a_panic_fails_the_attempt() {
    let case = Case::new("panic").await;
    let (message, attempts) = case.failure().await;
    assert_eq!(message, "the handler panicked: the handler's own words");
    assert_eq!(attempts, 2);
    case.end().await;
}

#[tokio::test]
async fn a_panic_can_be_followed_by_success() {
    let case = Case::new("panic once").await;
    case.succeeds().await;
    assert_eq!(case.task().await.attempts, 2);
    case.end().await;
}

#[tokio::test]
async fn a_permanent_error_is_not_retried() {
    let case = Case::new("permanent").await;
    assert_eq!(case.failure().await, ("no such page".to_owned(), 1));
    case.end().await;
}

#[tokio::test]
async fn a_handler_chooses_when_to_be_retried() {
    let case = Case::new("at once").await;
    case.succeeds().await;
    assert_eq!(case.task().await.attempts, 2);
    case.end().await;
}

#[tokio::test]
async fn a_chosen_delay_hides_the_message_for_that_long() {
    let case = Case::new("in an hour").await;
    case.probe.until_seen("attempt 1").await;
    until_task_is(&case.database.pool, case.run.run_id(), Step::Act, "queued").await;
    let minutes: f64 = sqlx::query_scalar(
        "select extract(epoch from q.vt - now())::float8 / 60 from pgmq.q_trouble q \
         join pgflow.step_tasks t on t.message_id = q.msg_id where t.run_id = $1",
    )
    .bind(case.run.run_id())
    .fetch_one(&case.database.pool)
    .await
    .unwrap();
    assert!((59.0..=60.0).contains(&minutes), "{minutes}");
    assert_eq!(
        case.task().await.error_message.as_deref(),
        Some("too many requests")
    );
    // People see the delay, too.
    let explained =
        pgflow::inspect::explain_step(&case.database.pool, case.run.run_id(), "act").await;
    let explained = explained.unwrap();
    assert_eq!(explained.reason, StepReason::RetryDelay);
    let is_that_of_the_message: bool = sqlx::query_scalar("select vt = $1 from pgmq.q_trouble")
        .bind(explained.visible_at)
        .fetch_one(&case.database.pool)
        .await
        .unwrap();
    assert!(is_that_of_the_message, "{explained:?}");
    case.end().await;
}

/// Returns the time for which the message of the run's task is hidden, in seconds, rounded up.
async fn hidden_for(case: &Case) -> i32 {
    sqlx::query_scalar(
        "select ceil(extract(epoch from q.vt - now()))::int from pgmq.q_trouble q \
         join pgflow.step_tasks t on t.message_id = q.msg_id where t.run_id = $1",
    )
    .bind(case.run.run_id())
    .fetch_one(&case.database.pool)
    .await
    .unwrap()
}

#[tokio::test]
async fn a_marker_inside_an_anyhow_error_chooses_the_delay() {
    let case = Case::new("inside anyhow").await;
    until_task_is(&case.database.pool, case.run.run_id(), Step::Act, "queued").await;
    case.probe.until_seen("attempt 1").await;
    eventually(DEADLINE, "the failure is recorded", async || {
        case.task().await.error_message
    })
    .await;
    // 7199.001 s, rounded up to whole seconds.
    let seconds = hidden_for(&case).await;
    assert!((7140..=7200).contains(&seconds), "{seconds}");
    assert_eq!(
        case.task().await,
        TaskRow {
            status: "queued".to_owned(),
            attempts: 1,
            error_message: Some("auditing: fetching the index: too many requests".to_owned()),
        }
    );
    case.end().await;
}

#[tokio::test]
async fn a_permanent_marker_inside_an_anyhow_error_skips_the_attempts_that_are_left() {
    let case = Case::new("permanent inside anyhow").await;
    assert_eq!(
        case.failure().await,
        ("auditing: fetching the index: no such page".to_owned(), 1)
    );
    case.end().await;
}

#[tokio::test]
async fn a_delay_out_of_bounds_is_refused_with_the_ordinary_back_off() {
    let case = Case::new("too long").await;
    let message = "a retry delay of 2147483648 s is refused, the limit is 2147483647 s; the ordinary back-off applies: gone fishing";
    // The second attempt comes after 2 s, not after 68 years.
    assert_eq!(case.failure().await, (message.to_owned(), 2));
    case.end().await;
}

#[tokio::test]
async fn a_handler_that_takes_too_long_is_dropped_and_told_so() {
    let case = Case::new("hang").await;
    case.probe.until_seen("told to stop").await;
    until_task_is(&case.database.pool, case.run.run_id(), Step::Act, "queued").await;
    let message = case.task().await.error_message.unwrap();
    assert!(
        message.starts_with("the attempt timed out after 3 s"),
        "{message}"
    );
    case.end().await;
}

#[tokio::test]
async fn an_output_that_does_not_serialise_fails_for_good() {
    let case = Case::new("unserialisable").await;
    let (message, attempts) = case.failure().await;
    assert_eq!(
        message,
        "the step's output can't be stored: it does not serialise to JSON: key must be a string"
    );
    assert_eq!(attempts, 1);
    case.end().await;
}

#[tokio::test]
async fn an_input_that_does_not_deserialise_fails_like_a_handler_and_is_not_quoted() {
    let case = Case::new("fine").await;
    case.succeeds().await;
    let run_id = sqlx::query_scalar("select run_id from pgflow.start_flow('trouble', $1)")
        .bind(json!({"secret": "hunter2"}))
        .fetch_one(&case.database.pool)
        .await
        .unwrap();
    let run = Client::new(case.database.pool.clone()).run::<Trouble>(run_id);
    let error = run
        .wait()
        .timeout(DEADLINE)
        .await
        .map(|_| ())
        .unwrap_err()
        .to_string();
    assert!(
        error.contains(&format!(
            "step `act`: this build ({}) can't read a stored value: the flow's input: invalid type (an object), expected a string",
            env!("CARGO_PKG_VERSION")
        )),
        "{error}"
    );
    assert!(!error.contains("hunter2"), "{error}");
    assert_eq!(
        task(&case.database.pool, run_id, Step::Act).await.attempts,
        2
    );
    case.end().await;
}
