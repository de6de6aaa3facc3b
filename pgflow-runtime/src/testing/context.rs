//! The context of an attempt that no worker runs.

use std::time::Duration;

use chrono::Utc;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use sqlx::PgPool;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::context::{Attempt, StepContext};

/// The context of an attempt that no worker runs: made by [`StepContext::for_test`].
///
/// ```
/// # let _runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
/// use std::time::Duration;
/// # use pgflow_runtime::context as pgflow;
/// use pgflow::StepContext;
///
/// let ctx = StepContext::for_test().attempt(2).max_attempts(5).task_index(3).deadline_in(Duration::from_secs(10)).build();
/// assert_eq!((ctx.attempt(), ctx.max_attempts(), ctx.task_index()), (2, 5, 3));
/// ```
///
/// To test how a step takes its cancellation, cancel the token:
/// `ctx.cancellation_token().cancel()`.
#[derive(Debug, Clone)]
#[must_use = "the context is made by `build`"]
pub struct StepContextBuilder {
    run_id: Uuid,
    flow_slug: &'static str,
    step_slug: &'static str,
    task_index: i32,
    attempt: i32,
    max_attempts: Option<i32>,
    deadline_in: Duration,
    pool: Option<PgPool>,
    flow_input: Option<Box<RawValue>>,
}

impl Default for StepContextBuilder {
    fn default() -> Self {
        Self {
            run_id: Uuid::nil(),
            flow_slug: "test",
            step_slug: "test",
            task_index: 0,
            attempt: 1,
            max_attempts: None,
            deadline_in: Duration::from_mins(1),
            pool: None,
            flow_input: None,
        }
    }
}

impl StepContextBuilder {
    /// The run; the nil id by default.
    pub fn run_id(mut self, run_id: Uuid) -> Self {
        self.run_id = run_id;
        self
    }

    /// The flow's slug; `test` by default.
    pub fn flow_slug(mut self, slug: &'static str) -> Self {
        self.flow_slug = slug;
        self
    }

    /// The step's slug; `test` by default.
    pub fn step_slug(mut self, slug: &'static str) -> Self {
        self.step_slug = slug;
        self
    }

    /// The element's position in the mapped list; 0 by default.
    pub fn task_index(mut self, index: i32) -> Self {
        self.task_index = index;
        self
    }

    /// Sets the number of the attempt; the first one by default.
    pub fn attempt(mut self, attempt: i32) -> Self {
        self.attempt = attempt;
        self
    }

    /// Sets the number of attempts of the task; 3 by default, or as many as
    /// [`attempt`](Self::attempt) needs.
    pub fn max_attempts(mut self, attempts: i32) -> Self {
        self.max_attempts = Some(attempts);
        self
    }

    /// Sets the time for the attempt, counted from [`build`](Self::build); a minute by default. The
    /// step is not dropped then.
    pub fn deadline_in(mut self, time: Duration) -> Self {
        self.deadline_in = time;
        self
    }

    /// Sets the pool that [`StepContext::pool`] returns, and that [`StepContext::flow_input`] reads
    /// from. Without it, both panic.
    pub fn pool(mut self, pool: &PgPool) -> Self {
        self.pool = Some(pool.clone());
        self
    }

    /// Sets the input that [`StepContext::flow_input`] returns, without a database.
    ///
    /// # Panics
    ///
    /// When the input does not serialise to JSON.
    #[track_caller]
    pub fn flow_input(mut self, input: &impl Serialize) -> Self {
        let json = to_raw_value(input);
        self.flow_input = Some(json.expect("the flow's input serialises to JSON"));
        self
    }

    /// The context.
    ///
    /// # Panics
    ///
    /// For numbers that no attempt has: a negative index, an attempt below 1 or above the most.
    #[track_caller]
    pub fn build(self) -> StepContext {
        let max_attempts = self.max_attempts.unwrap_or(self.attempt.max(3));
        assert!(
            (1..=max_attempts).contains(&self.attempt),
            "`attempt` is {} of {max_attempts}; attempts are counted from 1 to `max_attempts`",
            self.attempt
        );
        assert!(
            self.task_index >= 0,
            "`task_index` is {}; tasks are counted from 0",
            self.task_index
        );
        StepContext::new(Attempt {
            run_id: self.run_id,
            flow_slug: self.flow_slug,
            step_slug: self.step_slug,
            task_index: self.task_index,
            attempt: self.attempt,
            max_attempts,
            message_id: 1,
            read_count: self.attempt,
            enqueued_at: Utc::now(),
            deadline: Instant::now() + self.deadline_in,
            cancelled: CancellationToken::new(),
            pool: self.pool,
            flow_input: self.flow_input,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::FlowInputError;

    #[test]
    fn the_defaults_are_those_of_a_first_attempt() {
        let ctx = StepContext::for_test().build();
        assert_eq!(
            (ctx.attempt(), ctx.max_attempts(), ctx.read_count()),
            (1, 3, 1)
        );
        assert_eq!(ctx.task_index(), 0);
        assert_eq!(ctx.run_id(), Uuid::nil());
        assert!(ctx.remaining() > Duration::from_secs(50));
        assert_eq!(
            ctx.idempotency_key(),
            "00000000-0000-0000-0000-000000000000:test:0"
        );
    }

    #[test]
    fn a_later_attempt_may_be_asked_for_alone() {
        let ctx = StepContext::for_test().attempt(7).build();
        assert_eq!((ctx.attempt(), ctx.max_attempts()), (7, 7));
    }

    #[test]
    #[should_panic(expected = "`attempt` is 4 of 3; attempts are counted from 1 to `max_attempts`")]
    fn an_attempt_above_the_most_is_refused() {
        let _ = StepContext::for_test().attempt(4).max_attempts(3).build();
    }

    #[test]
    #[should_panic(expected = "`attempt` is 0 of 3")]
    fn an_attempt_below_one_is_refused() {
        let _ = StepContext::for_test().attempt(0).build();
    }

    #[test]
    #[should_panic(expected = "`task_index` is -1; tasks are counted from 0")]
    fn a_negative_index_is_refused() {
        let _ = StepContext::for_test().task_index(-1).build();
    }

    #[test]
    #[should_panic(expected = "give it `.pool(&pool)`")]
    fn without_a_pool_asking_for_it_says_what_to_do() {
        let _ = StepContext::for_test().build().pool();
    }

    #[tokio::test]
    async fn a_given_input_needs_no_database() {
        let ctx = StepContext::for_test().flow_input(&[1, 2]).build();
        assert_eq!(ctx.flow_input::<Vec<u8>>().await.expect("a list"), [1, 2]);
        let error = ctx.flow_input::<String>().await.expect_err("no text");
        assert!(matches!(error, FlowInputError::Decode(_)), "{error}");
    }

    #[tokio::test]
    #[should_panic(expected = "for `ctx.flow_input()` only `.flow_input(&input)`")]
    async fn without_input_and_database_asking_for_it_says_what_to_do() {
        let _ = StepContext::for_test().build().flow_input::<u8>().await;
    }

    #[tokio::test]
    async fn a_test_cancels_by_the_token() {
        let ctx = StepContext::for_test().build();
        ctx.cancellation_token().cancel();
        ctx.cancelled().await;
    }
}
