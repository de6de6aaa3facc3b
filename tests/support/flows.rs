//! Small flows, workers and tasks for tests that talk to the SQL functions: what a client and a
//! worker would call, and no more.
//!
//! ```ignore
//! define(&db.pool, "orders", &[step("fetch"), step("pack").deps(&["fetch"]).map()]).await;
//! let run = start(&db.pool, "orders", json!({})).await;
//! let worker = worker(&db.pool, "orders").await;
//! drain(&db.pool, worker, |task| json!([task.step_slug])).await;
//! assert_eq!(run_status(&db.pool, run).await, "completed");
//! ```

use serde_json::{Value, json};
use sqlx::postgres::{PgExecutor, PgPool, PgRow};
use sqlx::types::chrono::{DateTime, Utc};
use sqlx::{FromRow, Row};
use uuid::Uuid;

/// The name of the worker function that [`worker`] registers under.
pub(crate) const FUNCTION: &str = "test-worker";

/// A step, as `add_step` takes it.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    slug: String,
    kind: &'static str,
    deps: Vec<String>,
    max_attempts: Option<i32>,
    base_delay: Option<i32>,
    max_delay: Option<i32>,
    give_up_after: Option<i32>,
    timeout: Option<i32>,
    start_delay: Option<i32>,
    required: Option<Value>,
    forbidden: Option<Value>,
    when_unmet: &'static str,
    when_exhausted: &'static str,
    tolerates_elements: bool,
    runs_on: Option<&'static str>,
}

/// A single step without dependencies.
pub(crate) fn step(slug: &str) -> Step {
    Step {
        slug: slug.to_owned(),
        kind: "single",
        deps: Vec::new(),
        max_attempts: None,
        base_delay: None,
        max_delay: None,
        give_up_after: None,
        timeout: None,
        start_delay: None,
        required: None,
        forbidden: None,
        when_unmet: "skip",
        when_exhausted: "fail",
        tolerates_elements: false,
        runs_on: None,
    }
}

impl Step {
    pub(crate) fn deps(mut self, deps: &[&str]) -> Self {
        self.deps = deps.iter().map(|&d| d.to_owned()).collect();
        self
    }

    pub(crate) fn map(mut self) -> Self {
        self.kind = "map";
        self
    }

    pub(crate) fn max_attempts(mut self, attempts: i32) -> Self {
        self.max_attempts = Some(attempts);
        self
    }

    pub(crate) fn base_delay(mut self, seconds: i32) -> Self {
        self.base_delay = Some(seconds);
        self
    }

    pub(crate) fn max_delay(mut self, seconds: i32) -> Self {
        self.max_delay = Some(seconds);
        self
    }

    pub(crate) fn give_up_after(mut self, seconds: i32) -> Self {
        self.give_up_after = Some(seconds);
        self
    }

    pub(crate) fn timeout(mut self, seconds: i32) -> Self {
        self.timeout = Some(seconds);
        self
    }

    pub(crate) fn start_delay(mut self, seconds: i32) -> Self {
        self.start_delay = Some(seconds);
        self
    }

    pub(crate) fn required(mut self, pattern: Value) -> Self {
        self.required = Some(pattern);
        self
    }

    pub(crate) fn forbidden(mut self, pattern: Value) -> Self {
        self.forbidden = Some(pattern);
        self
    }

    pub(crate) fn when_unmet(mut self, mode: &'static str) -> Self {
        self.when_unmet = mode;
        self
    }

    pub(crate) fn when_exhausted(mut self, mode: &'static str) -> Self {
        self.when_exhausted = mode;
        self
    }

    /// `on_element_failure` is null.
    pub(crate) fn tolerant(mut self) -> Self {
        self.tolerates_elements = true;
        self
    }

    fn on_element_failure(&self) -> Option<&'static str> {
        self.tolerates_elements.then_some("null")
    }

    /// It runs when the run has ended: `failure` or `end`.
    pub(crate) fn on(mut self, end: &'static str) -> Self {
        self.runs_on = Some(end);
        self
    }

    /// Calls `add_step`, once.
    pub(crate) async fn add(&self, db: impl PgExecutor<'_>, flow: &str) -> sqlx::Result<PgRow> {
        sqlx::query(
            "select * from pgflow.add_step($1, $2, $3, max_attempts => $4, base_delay => $5, timeout => $6, start_delay => $7,
                step_type => $8, required_input_pattern => $9, forbidden_input_pattern => $10, when_unmet => $11, when_exhausted => $12,
                max_delay => $13, give_up_after => $14, on_element_failure => $15, runs_on => $16)",
        )
        .bind(flow)
        .bind(&self.slug)
        .bind(&self.deps)
        .bind(self.max_attempts)
        .bind(self.base_delay)
        .bind(self.timeout)
        .bind(self.start_delay)
        .bind(self.kind)
        .bind(&self.required)
        .bind(&self.forbidden)
        .bind(self.when_unmet)
        .bind(self.when_exhausted)
        .bind(self.max_delay)
        .bind(self.give_up_after)
        .bind(self.on_element_failure())
        .bind(self.runs_on)
        .fetch_one(db)
        .await
    }

    /// This step in the shape that a worker sends.
    fn shape(&self) -> Value {
        let pattern = |value: &Option<Value>| match value {
            Some(value) => json!({"defined": true, "value": value}),
            None => json!({"defined": false}),
        };
        let mut deps = self.deps.clone();
        deps.sort();
        let options = [
            ("maxAttempts", self.max_attempts),
            ("baseDelay", self.base_delay),
            ("maxDelay", self.max_delay),
            ("giveUpAfter", self.give_up_after),
            ("timeout", self.timeout),
            ("startDelay", self.start_delay),
        ];
        let options: serde_json::Map<String, Value> = options
            .into_iter()
            .filter_map(|(key, value)| Some((key.to_owned(), json!(value?))))
            .collect();
        let mut shape = json!({
            "slug": self.slug,
            "stepType": self.kind,
            "dependencies": deps,
            "whenUnmet": self.when_unmet,
            "whenExhausted": self.when_exhausted,
            "requiredInputPattern": pattern(&self.required),
            "forbiddenInputPattern": pattern(&self.forbidden),
            "options": options,
        });
        if let Some(mode) = self.on_element_failure() {
            shape["onElementFailure"] = json!(mode);
        }
        if let Some(end) = self.runs_on {
            shape["runsOn"] = json!(end);
        }
        shape
    }
}

/// The shape of a flow of these steps, as `ensure_flow_compiled` takes it.
pub(crate) fn shape(steps: &[Step]) -> Value {
    json!({"steps": steps.iter().map(Step::shape).collect::<Vec<_>>(), "options": {}})
}

/// Defines a plain flow with `create_flow` and `add_step`. Its attempts have no delay between them,
/// unless a step says otherwise.
pub(crate) async fn define(pool: &PgPool, flow: &str, steps: &[Step]) {
    sqlx::query("select pgflow.create_flow($1, base_delay => 0)")
        .bind(flow)
        .execute(pool)
        .await
        .expect("the flow can be created");
    for step in steps {
        step.add(pool, flow).await.expect("the step can be added");
    }
}

/// Defines a flow with a queue for each step, as its workers do. Its attempts have no delay between
/// them, unless a step says otherwise.
pub(crate) async fn define_with_step_queues(pool: &PgPool, flow: &str, steps: &[Step]) {
    let mut shape = shape(steps);
    shape["options"] = json!({"baseDelay": 0});
    let status: String = sqlx::query_scalar(
        "select pgflow.ensure_flow_compiled($1, $2, queue_mode => 'step') ->> 'status'",
    )
    .bind(flow)
    .bind(shape)
    .fetch_one(pool)
    .await
    .expect("the flow can be compiled");
    assert_eq!(status, "compiled");
}

/// Starts a run.
pub(crate) async fn start(db: impl PgExecutor<'_>, flow: &str, input: Value) -> Uuid {
    sqlx::query_scalar("select run_id from pgflow.start_flow($1, $2)")
        .bind(flow)
        .bind(input)
        .fetch_one(db)
        .await
        .expect("the run can be started")
}

/// Registers a worker of a plain flow, whose handlers take nothing but their own input.
pub(crate) async fn worker(pool: &PgPool, flow: &str) -> Uuid {
    worker_taking_flow_input(pool, flow, &[]).await
}

/// Registers a worker of a plain flow; the handlers of these steps also take the flow's input.
pub(crate) async fn worker_taking_flow_input(pool: &PgPool, flow: &str, steps: &[&str]) -> Uuid {
    let id = Uuid::now_v7();
    sqlx::query("select pgflow.track_worker_function($1)")
        .bind(FUNCTION)
        .execute(pool)
        .await
        .expect("the function can be tracked");
    sqlx::query("select pgflow.register_worker($1, $2, $3, null, lower($3), $4)")
        .bind(id)
        .bind(FUNCTION)
        .bind(flow)
        .bind(steps)
        .execute(pool)
        .await
        .expect("the worker can be registered");
    id
}

/// Registers a worker of one step of a flow with step queues.
pub(crate) async fn step_worker(pool: &PgPool, flow: &str, step: &str) -> Uuid {
    let id = Uuid::now_v7();
    sqlx::query("select pgflow.track_worker_function($1)")
        .bind(FUNCTION)
        .execute(pool)
        .await
        .expect("the function can be tracked");
    sqlx::query(
        "select pgflow.register_worker($1, $2, s.flow_slug, s.step_slug, s.queue_name, '{}')
         from pgflow.steps s where s.flow_slug = $3 and s.step_slug = $4",
    )
    .bind(id)
    .bind(FUNCTION)
    .bind(flow)
    .bind(step)
    .execute(pool)
    .await
    .expect("the worker can be registered");
    id
}

/// A row of `claim_tasks`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Claimed {
    pub(crate) run_id: Uuid,
    pub(crate) step_slug: String,
    pub(crate) task_index: i32,
    pub(crate) attempt: i32,
    pub(crate) max_attempts: i32,
    pub(crate) timeout: i32,
    pub(crate) message_id: i64,
    pub(crate) read_count: i32,
    pub(crate) enqueued_at: DateTime<Utc>,
    pub(crate) started_at: DateTime<Utc>,
    pub(crate) input: Value,
    pub(crate) flow_input: Option<Value>,
    pub(crate) queue_name: String,
}

impl FromRow<'_, PgRow> for Claimed {
    fn from_row(row: &PgRow) -> sqlx::Result<Self> {
        let outcome: String = row.try_get("outcome")?;
        let reason: Option<String> = row.try_get("reason")?;
        if outcome != "claimed" || reason.is_some() {
            let what = format!("a claim answered {outcome}: {}", reason.unwrap_or_default());
            return Err(sqlx::Error::Decode(what.into()));
        }
        Ok(Self {
            run_id: row.try_get("run_id")?,
            step_slug: row.try_get("step_slug")?,
            task_index: row.try_get("task_index")?,
            attempt: row.try_get("attempt")?,
            max_attempts: row.try_get("max_attempts")?,
            timeout: row.try_get("timeout")?,
            message_id: row.try_get("message_id")?,
            read_count: row.try_get("read_count")?,
            enqueued_at: row.try_get("enqueued_at")?,
            started_at: row.try_get("started_at")?,
            // NULL where it is the flow's input, which came with another task.
            input: row
                .try_get::<Option<Value>, _>("input")?
                .unwrap_or_default(),
            flow_input: row.try_get("flow_input")?,
            queue_name: row.try_get("queue_name")?,
        })
    }
}

/// Claims up to `max_tasks` tasks; a fatal answer fails the test.
pub(crate) async fn claim(db: impl PgExecutor<'_>, worker: Uuid, max_tasks: i32) -> Vec<Claimed> {
    try_claim(db, worker, max_tasks)
        .await
        .expect("the claim succeeds")
}

/// Claims exactly one task, the next one.
pub(crate) async fn claim_one(db: impl PgExecutor<'_>, worker: Uuid) -> Claimed {
    let mut claimed = claim(db, worker, 1).await;
    claimed.pop().expect("a task is waiting")
}

/// As [`claim`], for claims that are expected to be refused.
pub(crate) async fn try_claim(
    db: impl PgExecutor<'_>,
    worker: Uuid,
    max_tasks: i32,
) -> sqlx::Result<Vec<Claimed>> {
    sqlx::query_as("select * from pgflow.claim_tasks($1, $2)")
        .bind(worker)
        .bind(max_tasks)
        .fetch_all(db)
        .await
}

/// The rows of a claim as they are, fatal ones too.
pub(crate) async fn raw_claim(db: impl PgExecutor<'_>, worker: Uuid, max_tasks: i32) -> Vec<PgRow> {
    sqlx::query("select * from pgflow.claim_tasks($1, $2)")
        .bind(worker)
        .bind(max_tasks)
        .fetch_all(db)
        .await
        .expect("a claim that is not refused by an error")
}

/// Completes a claimed attempt; returns the status of its task afterwards.
pub(crate) async fn complete(db: impl PgExecutor<'_>, task: &Claimed, output: Value) -> String {
    sqlx::query_scalar("select status from pgflow.complete_task($1, $2, $3, $4, $5)")
        .bind(task.run_id)
        .bind(&task.step_slug)
        .bind(task.task_index)
        .bind(output)
        .bind(task.attempt)
        .fetch_one(db)
        .await
        .expect("the task can be completed")
}

/// Fails a claimed attempt; returns the status of its task afterwards.
pub(crate) async fn fail(db: impl PgExecutor<'_>, task: &Claimed, error_message: &str) -> String {
    sqlx::query_scalar("select status from pgflow.fail_task($1, $2, $3, $4, attempt => $5)")
        .bind(task.run_id)
        .bind(&task.step_slug)
        .bind(task.task_index)
        .bind(error_message)
        .bind(task.attempt)
        .fetch_one(db)
        .await
        .expect("the task can be failed")
}

/// Postpones a claimed attempt; returns the status of its task afterwards.
pub(crate) async fn postpone(
    db: impl PgExecutor<'_>,
    task: &Claimed,
    delay: &str,
    cause: &str,
) -> sqlx::Result<String> {
    sqlx::query_scalar(
        "select status from pgflow.postpone_task($1, $2, $3, $4, $5::text::numeric, attempt => $6)",
    )
    .bind(task.run_id)
    .bind(&task.step_slug)
    .bind(task.task_index)
    .bind(cause)
    .bind(delay)
    .bind(task.attempt)
    .fetch_one(db)
    .await
}

/// Claims and completes tasks one by one until none is visible; returns how many.
pub(crate) async fn drain(
    pool: &PgPool,
    worker: Uuid,
    mut handler: impl FnMut(&Claimed) -> Value,
) -> usize {
    let mut completed = 0;
    while let Some(task) = claim(pool, worker, 1).await.pop() {
        assert_eq!(complete(pool, &task, handler(&task)).await, "completed");
        completed += 1;
    }
    completed
}
