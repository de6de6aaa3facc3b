//! What workers log.

use pgflow::client::Client;
use pgflow::prelude::*;

use super::{DEADLINE, capture::capture, start};
use crate::support::{TestDb, invariants::assert_invariants};

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
    for part in [
        "flow=\"talk\"",
        "queue=\"talk\"",
        "function=\"talk\"",
        "concurrency=10",
        "definition=\"compiled\"",
    ] {
        assert!(started.contains(part), "{part} in {started}");
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
    assert!(failed.contains("the line is busy"), "{failed}");
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
