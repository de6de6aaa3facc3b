//! Steps that run when the run has ended, with real workers.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use pgflow::client::{Client, RunError};
use pgflow::prelude::*;

use super::{DEADLINE, start};
use crate::support::invariants::assert_invariants;
use crate::support::rows::count;
use crate::support::{TestDb, eventually};

/// The ends that end steps received.
type Seen = Arc<Mutex<Vec<String>>>;

/// One flow, with one queue and with a queue for each step.
macro_rules! orders {
    ($module:ident, $($option:tt)*) => {
        mod $module {
            use super::*;

            pub(super) struct Orders;

            #[flow(input = u32, state = Seen, $($option)*)]
            impl Orders {
                #[step]
                async fn double(input: u32) -> StepResult<u32> {
                    Ok(input * 2)
                }

                #[step(depends_on = [double], max_attempts = 1)]
                async fn check(double: u32) -> StepResult<u32> {
                    if double == 26 {
                        return Err("an unlucky number".into());
                    }
                    Ok(double)
                }

                #[step(on = failure, max_attempts = 2, base_delay = "1s")]
                async fn alarm(
                    end: &RunEnd, input: u32, state: &Seen, ctx: &StepContext,
                ) -> StepResult<()> {
                    let double = end.output::<u32>(Step::Double)?;
                    state.lock().unwrap().push(format!(
                        "alarm {}: {input} {double:?} {:?} {:?}",
                        ctx.attempt(), end.failed_step, end.error
                    ));
                    Err("nobody answers".into())
                }

                #[step(on = end)]
                async fn tidy(end: &RunEnd, state: &Seen) -> StepResult<u32> {
                    state.lock().unwrap().push(format!("tidy {:?}", end.status));
                    Ok(7)
                }
            }
        }
    };
}

orders!(one_queue, slug = "orders");
orders!(queue_per_step, slug = "orders_by_step", with_step_queues);

/// Waits until no task is at work.
async fn all_is_done(db: &TestDb) {
    eventually(DEADLINE, "end steps end", async || {
        let active = count(
            &db.pool,
            "pgflow.step_tasks where status in ('queued', 'started')",
        );
        (active.await == 0).then_some(())
    })
    .await;
}

fn expected(mut seen: Vec<String>) {
    seen.sort();
    let alarm = |attempt: u8| {
        format!(r#"alarm {attempt}: 13 Some(26) Some("check") Some("an unlucky number")"#)
    };
    assert_eq!(
        seen,
        [
            alarm(1),
            alarm(2),
            "tidy Completed".to_owned(),
            "tidy Failed".to_owned()
        ]
    );
}

#[tokio::test]
async fn they_run_after_the_end_and_change_nothing_about_it() {
    let db = TestDb::new().await;
    let seen = Seen::default();
    let worker = start::<one_queue::Orders>(&db.pool, seen.clone()).await;
    let client = Client::new(db.pool.clone());
    let good = client.start::<one_queue::Orders>(&1).await.unwrap();
    let bad = client.start::<one_queue::Orders>(&13).await.unwrap();
    assert_eq!(good.wait().timeout(DEADLINE).await.unwrap().check, 2);
    let error = bad.wait().timeout(DEADLINE).await.unwrap_err();
    assert!(matches!(error, RunError::Failed { .. }), "{error}");
    all_is_done(&db).await;
    expected(seen.lock().unwrap().clone());

    // The events of a run end with it, whenever they are read.
    for (run, last) in [(&good, "run_completed"), (&bad, "run_failed")] {
        let mut events = run.events().await.unwrap();
        let mut types = Vec::new();
        while let Some(event) = events.next().await {
            let event = serde_json::to_value(event.unwrap()).unwrap();
            assert!(
                event["step"] != "alarm" && event["step"] != "tidy",
                "{event}"
            );
            types.push(event["type"].as_str().unwrap().to_owned());
        }
        assert_eq!(types.last().unwrap(), last);
    }
    let error = bad.wait().await.unwrap_err();
    assert!(error.to_string().contains("an unlucky number"), "{error}");
    worker.stop().await.unwrap();
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn with_step_queues_each_has_its_own_worker() {
    let db = TestDb::new().await;
    let seen = Seen::default();
    let workers = StepWorker::<queue_per_step::Orders>::all_with_state(seen.clone())
        .start(&db.pool)
        .await
        .unwrap();
    let client = Client::new(db.pool.clone());
    for input in [1, 13] {
        let run = client
            .start::<queue_per_step::Orders>(&input)
            .await
            .unwrap();
        let _ = run.wait().timeout(DEADLINE).await;
    }
    all_is_done(&db).await;
    expected(seen.lock().unwrap().clone());
    workers.stop().await.unwrap();
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn an_idle_worker_needs_no_poll_for_them() {
    let db = TestDb::new().await;
    let seen = Seen::default();
    let worker = FlowWorker::<one_queue::Orders>::with_state(seen.clone())
        .poll_interval(Duration::from_hours(1))
        .start(&db.pool)
        .await
        .unwrap();
    let client = Client::new(db.pool.clone());
    client.start::<one_queue::Orders>(&1).await.unwrap();
    eventually(DEADLINE, "the end step runs", async || {
        (!seen.lock().unwrap().is_empty()).then_some(())
    })
    .await;
    worker.stop().await.unwrap();
    assert_invariants(&db.pool).await;
}
