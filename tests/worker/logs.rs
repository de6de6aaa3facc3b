//! The log lines of workers.

use pgflow::client::Client;
use pgflow::prelude::*;

use super::{DEADLINE, capture::capture, start};
use crate::support::{TestDb, eventually, invariants::assert_invariants};

/// Says something, and fails once.
struct Talk;

#[flow(input = String, base_delay = "1s")]
impl Talk {
    #[step]
    async fn say(input: &str, ctx: &StepContext) -> StepResult<String> {
        tracing::info!("the handler speaks");
        if ctx.attempt() == 1 {
            Err("the line is busy")?;
        }
        Ok(format!("{input} and more"))
    }
}

#[derive(serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct Order {
    customer_plan: String,
}

/// Has a condition that is written as in Rust, not as in JSON.
struct Misspelt;

mod misspelt {
    use super::{Misspelt, Order};
    use pgflow::prelude::*;

    #[flow(input = Order)]
    impl Misspelt {
        #[step(if = { customer_plan: "premium" })]
        async fn thank(input: &Order) -> StepResult<String> {
            Ok(input.customer_plan.clone())
        }

        #[step(if_not = { customerPlan: "basic", total: 0 })]
        async fn invoice(input: &Order) -> StepResult<String> {
            Ok(input.customer_plan.clone())
        }
    }
}

#[tokio::test]
async fn a_condition_that_names_no_field_of_the_input_is_warned_of_once() {
    let lines = capture();
    let database = TestDb::new().await;
    let worker = start::<Misspelt>(&database.pool, ()).await;
    worker.stop().await.unwrap();

    let warning = lines.line("which is no field of the flow's input");
    for part in [
        "WARN",
        "the condition `if` of this step names `customer_plan`",
        "was `customerPlan` meant?",
        "flow=\"misspelt\" step=\"thank\"",
    ] {
        assert!(warning.contains(part), "{part} in {warning}");
    }
    assert_invariants(&database.pool).await;
}

/// Fails in each way in which no attempt follows, and in one in which one does.
struct Trouble;

mod trouble {
    use std::time::Duration;

    use super::Trouble;
    use pgflow::prelude::*;
    use pgflow::sqlx;

    #[flow(input = ())]
    impl Trouble {
        #[step(max_attempts = 1, when_exhausted = "skip")]
        async fn last() -> StepResult<()> {
            Err("hung up".into())
        }

        #[step(when_exhausted = "skip")]
        async fn gone() -> StepResult<()> {
            Err(StepError::permanent("no such number"))
        }

        /// Somebody takes its attempts away while it runs.
        #[step(when_exhausted = "skip")]
        async fn lowered(ctx: &StepContext) -> StepResult<()> {
            let sql = "update pgflow.steps set opt_max_attempts = 1 where step_slug = 'lowered'";
            sqlx::raw_sql(sql).execute(ctx.pool()).await?;
            Err("cut off".into())
        }

        #[step]
        async fn later() -> StepResult<()> {
            Err(StepError::retry_after(
                Duration::from_hours(1),
                "try again later",
            ))
        }
    }
}

#[tokio::test]
async fn a_failed_attempt_says_when_the_next_one_comes_or_why_none_does() {
    let lines = capture();
    let database = TestDb::new().await;
    let worker = start::<Trouble>(&database.pool, ()).await;
    let client = Client::new(database.pool.clone());
    client.start::<Trouble>(&()).await.unwrap();
    eventually(DEADLINE, "four attempts have ended", async || {
        let failed = lines.lines("attempt failed").len();
        (failed == 3 && !lines.lines("attempt put off").is_empty()).then_some(())
    })
    .await;
    worker.stop().await.unwrap();

    for (error, level, message, has_delay) in [
        (
            "hung up",
            "ERROR",
            ": attempt failed, it was the last one error=",
            false,
        ),
        (
            "no such number",
            "ERROR",
            ": attempt failed, and no other follows: its error is permanent error=",
            false,
        ),
        (
            "cut off",
            "ERROR",
            ": attempt failed, and no other follows: the task may have fewer now, or its message is gone error=",
            false,
        ),
        (
            "try again later",
            "INFO",
            ": attempt put off by its handler, another one follows error=",
            true,
        ),
    ] {
        let line = lines.line(&format!("error={error}"));
        assert!(
            line.contains(level) && line.contains(message),
            "{message} in {line}"
        );
        assert!(line.contains("attempt=1}"), "{line}");
        assert_eq!(line.contains("retry_delay=3600s"), has_delay, "{line}");
    }
    assert_invariants(&database.pool).await;
}

#[tokio::test]
async fn every_event_says_which_worker_and_which_attempt() {
    let lines = capture();

    let database = TestDb::new().await;
    let worker = start::<Talk>(&database.pool, ()).await;
    let worker_id = worker.worker_id();
    let client = Client::new(database.pool.clone());
    let run = client.start::<Talk>(&"hunter2".to_owned()).await.unwrap();
    assert_eq!(
        run.wait().timeout(DEADLINE).await.unwrap().say,
        "hunter2 and more"
    );
    worker.stop().await.unwrap();

    let in_worker = format!("pgflow.worker{{flow=\"talk\" queue=\"talk\" worker_id={worker_id}}}");
    let started = lines.line("worker started");
    assert!(started.contains("INFO"), "{started}");
    assert!(started.contains(&in_worker), "{started}");
    // What the span says, the event does not repeat.
    for part in [
        "flow=\"talk\"",
        "queue=\"talk\"",
        "worker_id=",
        "function=\"talk\"",
        "concurrency=10",
        "definition=\"compiled\"",
    ] {
        assert_eq!(started.matches(part).count(), 1, "{part} in {started}");
    }
    let in_task = format!(
        "pgflow.task{{run_id={} step=\"say\" task_index=0 attempt=1}}",
        run.run_id()
    );
    let failed = lines.line("attempt failed");
    assert!(
        failed.contains(&format!("WARN {in_worker}:{in_task}")),
        "{failed}"
    );
    for part in [
        ": attempt failed, another one follows ",
        "error=the line is busy",
        "max_attempts=3",
        "retry_delay=2s",
    ] {
        assert!(failed.contains(part), "{part} in {failed}");
    }
    let spoke = lines.all();
    let mut spoke = spoke
        .lines()
        .filter(|line| line.contains("the handler speaks"));
    assert!(
        spoke
            .next()
            .unwrap()
            .contains(&format!("INFO {in_worker}:{in_task}"))
    );
    assert!(spoke.next().unwrap().contains("attempt=2}"));
    let stopped = lines.line("worker stopped");
    assert!(stopped.contains(&format!("INFO {in_worker}")), "{stopped}");
    // Neither inputs nor outputs.
    assert!(!lines.all().contains("hunter2"), "{}", lines.all());
}
