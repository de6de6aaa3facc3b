//! The flow that runs while everything around it breaks, with one queue and with a queue for each
//! step.

use std::{
    future::pending,
    hash::{DefaultHasher, Hash, Hasher},
    time::Duration,
};

use pgflow::prelude::*;
use serde::{Deserialize, Serialize};

use super::effects;

/// Attempts of a step that always fails.
pub(crate) const HOPELESS_ATTEMPTS: i32 = 2;
pub(crate) const DOOM: &str = "doomed from the start";

/// The input of a run, which decides all that must become of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) elements: Vec<u32>,
    /// Its last step fails permanently.
    pub(crate) is_doomed: bool,
    pub(crate) plan: String,
    /// Decides which attempts fail, how, and how long they take.
    pub(crate) seed: u64,
}

pub(crate) const PREMIUM: &str = "premium";

impl Order {
    /// The nth order: every tenth has no elements, and every sixth is doomed.
    pub(crate) fn nth(number: usize, rng: &mut fastrand::Rng) -> Self {
        let elements = if number % 10 == 7 {
            0
        } else {
            rng.usize(5..=20)
        };
        Self {
            elements: (0..elements).map(|_| rng.u32(..1000)).collect(),
            is_doomed: number % 6 == 3,
            plan: if rng.bool() { PREMIUM } else { "basic" }.to_owned(),
            seed: rng.u64(..),
        }
    }
}

/// The course of the attempts of one task.
#[derive(Debug, Clone, Copy)]
struct Course {
    /// So many attempts fail before one may succeed.
    failures: i32,
    way: Way,
    work: Duration,
}

#[derive(Debug, Clone, Copy)]
enum Way {
    Error,
    Panic,
    /// Goes on until it is dropped.
    Hang,
}

impl Course {
    fn of(order: &Order, ctx: &StepContext) -> Self {
        let mut hasher = DefaultHasher::new();
        (order.seed, ctx.step_slug(), ctx.task_index()).hash(&mut hasher);
        let mut rng = fastrand::Rng::with_seed(hasher.finish());
        let failures = match rng.u8(..100) {
            0..75 => 0,
            75..92 => 1,
            _ => 2,
        };
        let way = match rng.u8(..100) {
            0..85 => Way::Error,
            85..98 => Way::Panic,
            _ => Way::Hang,
        };
        Self {
            failures,
            way,
            work: Duration::from_millis(rng.u64(2..60)),
        }
    }
}

/// One attempt: its effect comes first, then it may fail, or be killed, or lose its connection.
pub(crate) async fn attempt(order: &Order, ctx: &StepContext) -> StepResult<()> {
    let course = Course::of(order, ctx);
    let is_good = ctx.attempt() > course.failures;
    effects::record(ctx, is_good).await;
    tokio::time::sleep(course.work).await;
    match course.way {
        _ if is_good => Ok(()),
        Way::Error => Err(StepError::retry_after(Duration::ZERO, "this one fails")),
        Way::Panic => panic!("this one panics"),
        Way::Hang => pending().await,
    }
}

/// An attempt that fails, like all others of its task.
pub(crate) async fn fail(ctx: &StepContext) -> StepResult<u32> {
    effects::record(ctx, false).await;
    Err(StepError::retry_after(Duration::ZERO, "all of these fail"))
}

/// The last attempt of a run that is to fail.
pub(crate) async fn doom(ctx: &StepContext) -> StepError {
    effects::record(ctx, false).await;
    StepError::permanent(DOOM)
}

/// A fan-out, a diamond, a condition, a step that is skipped as it is out of attempts, and one that
/// may fail its run.
///
/// Attempts are plentiful, because those that are lost to chaos count: but for what its input says,
/// no task runs out of them.
macro_rules! flow_of_everything {
    ($flow:ident $(, $option:ident)?) => {
        use pgflow::prelude::*;

        use super::{HOPELESS_ATTEMPTS, Order, attempt, doom, fail};

        #[derive(Debug)]
        pub(crate) struct $flow;

        #[flow(input = Order, max_attempts = 20, base_delay = "1s", timeout = "3s" $(, $option)?)]
        impl $flow {
            #[step]
            async fn gather(input: &Order, ctx: &StepContext) -> StepResult<Vec<u32>> {
                attempt(input, ctx).await?;
                Ok(input.elements.clone())
            }

            #[step(map = gather)]
            async fn each(item: u32, input: &Order, ctx: &StepContext) -> StepResult<u32> {
                attempt(input, ctx).await?;
                Ok(item * 2)
            }

            #[step(depends_on = [each])]
            async fn collect(each: &[u32], input: &Order, ctx: &StepContext) -> StepResult<u32> {
                attempt(input, ctx).await?;
                Ok(each.iter().sum())
            }

            #[step(depends_on = [gather])]
            async fn left(gather: &[u32], input: &Order, ctx: &StepContext) -> StepResult<u32> {
                attempt(input, ctx).await?;
                Ok(gather.iter().copied().max().unwrap_or_default())
            }

            #[step(depends_on = [gather])]
            async fn right(gather: &[u32], input: &Order, ctx: &StepContext) -> StepResult<u32> {
                attempt(input, ctx).await?;
                Ok(gather.iter().copied().min().unwrap_or_default())
            }

            #[step(depends_on = [left, right])]
            async fn meet(left: u32, right: u32, input: &Order, ctx: &StepContext) -> StepResult<u32> {
                attempt(input, ctx).await?;
                Ok(left - right)
            }

            #[step(max_attempts = 2, when_exhausted = "skip")]
            async fn hopeless(ctx: &StepContext) -> StepResult<u32> {
                assert!(ctx.max_attempts() >= HOPELESS_ATTEMPTS);
                fail(ctx).await
            }

            #[step(depends_on = [hopeless])]
            async fn without(hopeless: Option<u32>, input: &Order, ctx: &StepContext) -> StepResult<bool> {
                attempt(input, ctx).await?;
                Ok(hopeless.is_none())
            }

            #[step(if = { plan: "premium" })]
            async fn extra(input: &Order, ctx: &StepContext) -> StepResult<String> {
                attempt(input, ctx).await?;
                Ok(input.plan.clone())
            }

            #[step(depends_on = [collect, meet])]
            async fn verdict(collect: u32, meet: u32, input: &Order, ctx: &StepContext) -> StepResult<u32> {
                if input.is_doomed {
                    return Err(doom(ctx).await);
                }
                attempt(input, ctx).await?;
                Ok(collect + meet)
            }
        }
    };
}

pub(crate) mod one_queue {
    flow_of_everything!(OneQueue);
}

pub(crate) mod step_queues {
    flow_of_everything!(StepQueues, with_step_queues);
}
