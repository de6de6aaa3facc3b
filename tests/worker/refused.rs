//! A service that allows few calls, and fails some: refusals are no failures.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use pgflow::client::Client;
use pgflow::prelude::*;

use super::worker;
use crate::support::{TestDb, invariants::assert_invariants};

/// The answers of the service to each call for an element.
type Answers = Arc<Mutex<Service>>;

#[derive(Default)]
struct Service {
    calls: Vec<Instant>,
    refused: HashMap<u32, usize>,
    failed: HashMap<u32, usize>,
}

impl Service {
    /// 3 calls in a quarter of a second are allowed. Of those each third element's first two fail,
    /// and each tenth element's all.
    fn call(&mut self, element: u32) -> u16 {
        let now = Instant::now();
        self.calls
            .retain(|at| now - *at < Duration::from_millis(250));
        if self.calls.len() >= 3 {
            *self.refused.entry(element).or_default() += 1;
            return 429;
        }
        self.calls.push(now);
        let failed = self.failed.entry(element).or_default();
        let fails = if element.is_multiple_of(10) {
            usize::MAX
        } else if element.is_multiple_of(3) {
            2
        } else {
            0
        };
        if *failed < fails {
            *failed += 1;
            return 500;
        }
        200
    }
}

/// Judges elements by what the service says.
struct Audit;

#[flow(input = Vec<u32>, state = Answers, base_delay = "1s")]
impl Audit {
    #[step(map = input)]
    async fn judge(item: u32, state: &Answers, ctx: &StepContext) -> StepResult<String> {
        assert!(ctx.attempt() <= ctx.max_attempts());
        let status = state.lock().unwrap().call(item);
        match status {
            429 => Err(StepError::postpone(
                Duration::from_millis(100),
                "too many requests",
            )),
            500 => {
                let failures = state.lock().unwrap().failed[&item];
                if failures < 3 {
                    Err("internal error".into())
                } else {
                    Ok("failed".to_owned())
                }
            }
            _ => Ok("fine".to_owned()),
        }
    }
}

#[tokio::test]
async fn each_element_is_judged_though_most_calls_are_refused() {
    let db = TestDb::new().await;
    let answers = Answers::default();
    let serving = worker::<Audit>(answers.clone()).concurrency(20);
    let serving = serving.start(&db.pool).await.unwrap();
    // The delays of failures are not what this is about.
    sqlx::query("select pgflow.tune_flow('audit', max_delay => 1)")
        .execute(&db.pool)
        .await
        .unwrap();
    let client = Client::new(db.pool.clone());
    let elements: Vec<u32> = (1..=100).collect();
    let run = client.start::<Audit>(&elements).await.unwrap();
    let judged = run.wait().timeout(Duration::from_mins(2)).await.unwrap();
    serving.stop().await.unwrap();
    for (element, verdict) in elements.iter().zip(judged.judge) {
        let expected = if element.is_multiple_of(10) {
            "failed"
        } else {
            "fine"
        };
        assert_eq!(verdict, expected, "of {element}");
    }
    let refused: usize = answers.lock().unwrap().refused.values().sum();
    assert!(refused > 100, "{refused} calls were refused");
    let (uncounted, counted, most): (i64, i32, i32) = sqlx::query_as(
        "select sum(uncounted_attempts), max(attempts_count - uncounted_attempts), max(retry_delay) from pgflow.step_tasks",
    )
    .fetch_one(&db.pool)
    .await
    .unwrap();
    assert_eq!(uncounted, i64::try_from(refused).unwrap());
    assert_eq!(counted, 3, "at most as many as are allowed");
    assert!(most <= 1, "no element waited for {most} s");
    assert_invariants(&db.pool).await;
}
