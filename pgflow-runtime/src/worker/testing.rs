//! A worker without a database, for the tests of its parts.

use std::{sync::Arc, time::Duration};

use chrono::Utc;
use pgflow_definition::{
    Condition, ElementFailure, FlowDefinition, FlowOptions, QueueMode, SkipMode, StepDefinition,
    StepKind, StepOptions,
};
use serde_json::value::{RawValue, to_raw_value};
use sqlx::postgres::PgPoolOptions;
use uuid::Uuid;

use super::{
    Shared, WorkerOptions, attempts::Attempts, budget::Budget, handlers::Handlers, hub,
    options::Settings, shutdown::Stop, wakeup::Wakeup,
};
use crate::{
    flow::{BoxFuture, StepError, Task},
    sql::claim::ClaimedTask,
};

/// The action of the handler of the only step.
pub(crate) type Act = fn(attempt: i32) -> BoxFuture<'static, Result<Box<RawValue>, StepError>>;

/// A single step without options.
pub(crate) const STEP: StepDefinition<'static> = StepDefinition {
    slug: "act",
    kind: StepKind::Single,
    depends_on: &[],
    options: StepOptions {
        max_attempts: None,
        base_delay: None,
        max_delay: None,
        give_up_after: None,
        timeout: None,
        start_delay: None,
    },
    condition: Condition {
        required: None,
        forbidden: None,
    },
    when_unmet: SkipMode::Skip,
    when_exhausted: SkipMode::Fail,
    on_element_failure: ElementFailure::Fail,
    runs_on: None,
    needs_flow_input: false,
};

/// A flow of that step alone.
pub(crate) const DEFINITION: FlowDefinition<'static> = FlowDefinition {
    slug: "play",
    queue_mode: QueueMode::Flow,
    options: FlowOptions {
        max_attempts: None,
        base_delay: None,
        max_delay: None,
        give_up_after: None,
        timeout: None,
    },
    steps: &[STEP],
};

struct Play(Option<Act>);

impl Handlers for Play {
    fn definition(&self) -> &'static FlowDefinition<'static> {
        &DEFINITION
    }

    fn build(&self) -> Option<&'static str> {
        None
    }

    fn input_fields(&self) -> Option<&'static [&'static str]> {
        None
    }

    fn call<'a>(
        &'a self,
        _: usize,
        task: &'a Task<'a>,
    ) -> Option<BoxFuture<'a, Result<Box<RawValue>, StepError>>> {
        self.0.map(|act| act(task.ctx().attempt()))
    }
}

/// The defaults.
pub(crate) fn options(function_name: &str) -> WorkerOptions {
    Settings::default().options(|| function_name.to_owned())
}

/// A worker of a flow with one step, with the given handler.
pub(crate) fn shared(act: Option<Act>, concurrency: usize) -> Arc<Shared> {
    let mut options = options("play");
    options.concurrency = concurrency;
    let pool = PgPoolOptions::new()
        .connect_lazy("postgres://nobody@127.0.0.1:1/none")
        .expect("a valid URL");
    Arc::new(Shared {
        budget: Budget::of(&pool),
        pool,
        worker_id: Uuid::nil(),
        queue_name: "play".to_owned(),
        handlers: Arc::new(Play(act)),
        options,
        wakeup: Wakeup::default(),
        attempts: Attempts::default(),
        stop: Stop::default(),
        vitals: Arc::default(),
        thread: hub::thread::handle().expect("a thread"),
    })
}

/// The nth attempt of three.
pub(crate) fn claimed(attempt: i32) -> ClaimedTask {
    ClaimedTask {
        run_id: Uuid::nil(),
        step_slug: "act".to_owned(),
        task_index: 0,
        attempt,
        max_attempts: 3,
        timeout: Duration::from_mins(1),
        message_id: 1,
        read_count: 1,
        enqueued_at: Utc::now(),
        started_at: None,
        input: output(),
        flow_input: None,
    }
}

pub(crate) fn output() -> Box<RawValue> {
    to_raw_value("output").expect("JSON")
}
