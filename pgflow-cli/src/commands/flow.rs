use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use clap::Args;
use pgflow_runtime::{
    definition::{ElementFailure, QueueMode, StepKind},
    inspect,
    inspect_flow::{self, StoredFlow, StoredOptions, StoredStep},
};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    age,
    arguments::{Connection, Output},
    database,
    exit::Exit,
    failure::Failure,
    output::{self, Text},
    table::{self, table},
    unknown,
    words::count,
};

#[derive(Debug, Args)]
pub(crate) struct Flow {
    /// The flow's slug.
    slug: String,
    /// Write the flow as a Mermaid diagram, and nothing else.
    #[arg(long)]
    mermaid: bool,
}

impl Flow {
    pub(crate) async fn run(
        self,
        connection: &Connection,
        output: &Output,
    ) -> Result<Exit, Failure> {
        let mut database = database::ready(connection).await?;
        let Some(flow) = inspect_flow::flow(&mut database, &self.slug).await? else {
            let known = inspect::flow_slugs(&mut database).await?;
            return Err(unknown::flow(&self.slug, &known));
        };
        if self.mermaid {
            print_diagram(&flow, output)?;
            return Ok(Exit::Done);
        }
        let workers = inspect_flow::live_workers(&mut database, &self.slug).await?;
        let shown = Shown::new(&flow, &workers);
        if output.json {
            output::print_json(&shown)?;
        } else {
            output::print(describe(&shown))?;
        }
        Ok(Exit::Done)
    }
}

fn print_diagram(flow: &StoredFlow, output: &Output) -> Result<(), Failure> {
    let diagram = flow.to_mermaid();
    if output.json {
        output::print_json(&json!({ "flow_slug": flow.flow_slug, "mermaid": diagram }))
    } else {
        output::print(diagram.trim_end().lines().collect::<Text>())
    }
}

/// A definition, what follows from it for each step, and who serves it.
#[derive(Debug, Serialize)]
struct Shown<'a> {
    flow_slug: &'a str,
    queue_mode: &'static str,
    options: StoredOptions,
    created_at: DateTime<Utc>,
    live_workers: i64,
    steps: Vec<ShownStep<'a>>,
}

#[derive(Debug, Serialize)]
struct ShownStep<'a> {
    #[serde(flatten)]
    step: &'a StoredStep,
    effective_options: StoredOptions,
    live_workers: i64,
}

impl<'a> Shown<'a> {
    fn new(flow: &'a StoredFlow, workers: &BTreeMap<String, i64>) -> Self {
        let steps = flow.steps.iter().map(|step| ShownStep {
            step,
            effective_options: flow
                .effective_options(&step.step_slug)
                .unwrap_or(step.options),
            live_workers: workers.get(&step.queue_name).copied().unwrap_or_default(),
        });
        Self {
            flow_slug: &flow.flow_slug,
            queue_mode: flow.queue_mode.as_str(),
            options: flow.options,
            created_at: flow.created_at,
            live_workers: workers.values().sum(),
            steps: steps.collect(),
        }
    }
}

fn describe(flow: &Shown<'_>) -> Text {
    let queues = if flow.queue_mode == QueueMode::Step.as_str() {
        "one for each step"
    } else {
        "one for all steps"
    };
    let workers = count(flow.live_workers.unsigned_abs(), "live worker");
    let mut text = Text::new();
    text.line(format!("flow     {}", flow.flow_slug));
    text.line(format!("defined  {}", table::time(flow.created_at)));
    text.line(format!("queues   {queues}"));
    text.line(format!("workers  {workers}"));
    text.line(format!("options  {}", options(flow.options)));
    text.blank();
    if flow.steps.is_empty() {
        text.line("no steps");
        return text;
    }
    text.append(steps(&flow.steps));
    if flow.steps.iter().any(has_options) {
        text.blank();
        text.line("*: the step's own; the other options are the flow's");
    }
    if let Some(conditions) = conditions(&flow.steps) {
        text.blank();
        text.append(conditions);
    }
    text
}

pub(super) fn options(options: StoredOptions) -> String {
    let parts = [
        options
            .max_attempts
            .map(|attempts| count(attempts.unsigned_abs().into(), "attempt")),
        options
            .base_delay
            .map(|delay| format!("base delay {}", age::short(delay))),
        options
            .max_delay
            .map(|delay| format!("max delay {}", age::short(delay))),
        options
            .give_up_after
            .map(|time| format!("give up after {}", age::short(time))),
        options
            .timeout
            .map(|timeout| format!("timeout {}", age::short(timeout))),
        options
            .start_delay
            .map(|delay| format!("start delay {}", age::short(delay))),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn has_options(step: &ShownStep<'_>) -> bool {
    let own = step.step.options;
    [
        own.max_attempts,
        own.base_delay,
        own.timeout,
        own.start_delay,
    ]
    .iter()
    .any(Option::is_some)
}

/// The mode, and the value of a failed element if its map continues. Empty for an end step, whose
/// failure changes no run.
fn when_exhausted(step: &StoredStep) -> String {
    let mode = step.when_exhausted.as_str();
    match (step.runs_on, step.on_element_failure) {
        (Some(_), _) => String::new(),
        (None, ElementFailure::Fail) => mode.to_owned(),
        (None, ElementFailure::Null) => format!("{mode}; an element: null"),
    }
}

fn steps(steps: &[ShownStep<'_>]) -> Text {
    let mut rows = table(&[
        "STEP",
        "KIND",
        "DEPENDS ON",
        "ATTEMPTS",
        "BASE DELAY",
        "TIMEOUT",
        "START DELAY",
        "WHEN EXHAUSTED",
        "QUEUE",
        "WORKERS",
    ]);
    for shown in steps {
        let (step, own, effective) = (shown.step, shown.step.options, shown.effective_options);
        let attempts = |attempts: i32| attempts.to_string();
        rows.add_row([
            step.step_slug.clone(),
            kind(step),
            step.depends_on.join(", "),
            option(own.max_attempts, effective.max_attempts, attempts),
            option(own.base_delay, effective.base_delay, age::short),
            option(own.timeout, effective.timeout, age::short),
            option(own.start_delay, effective.start_delay, age::short),
            when_exhausted(step),
            step.queue_name.clone(),
            shown.live_workers.to_string(),
        ]);
    }
    table::text(&rows)
}

fn kind(step: &StoredStep) -> String {
    if let Some(end) = step.runs_on {
        return format!("on {}", end.as_str());
    }
    match (step.step_type, step.depends_on.first()) {
        (StepKind::Single, _) => "single".to_owned(),
        (StepKind::Map, Some(source)) => format!("map over {source}"),
        (StepKind::Map, None) => "map over the input".to_owned(),
    }
}

/// The value that applies, with a mark when the step has set it.
fn option(own: Option<i32>, effective: Option<i32>, written: impl Fn(i32) -> String) -> String {
    let mark = if own.is_some() { "*" } else { "" };
    effective.map_or_else(String::new, |value| format!("{}{mark}", written(value)))
}

/// Those of the steps that have some.
fn conditions(steps: &[ShownStep<'_>]) -> Option<Text> {
    let mut rows = table(&["STEP", "IF", "IF NOT", "WHEN UNMET"]);
    let pattern =
        |pattern: &Option<Value>| pattern.as_ref().map_or_else(String::new, Value::to_string);
    for ShownStep { step, .. } in steps {
        let (required, forbidden) = (&step.required_input_pattern, &step.forbidden_input_pattern);
        if required.is_some() || forbidden.is_some() {
            rows.add_row([
                step.step_slug.clone(),
                pattern(required),
                pattern(forbidden),
                step.when_unmet.as_str().to_owned(),
            ]);
        }
    }
    (!rows.is_empty()).then(|| table::text(&rows))
}
