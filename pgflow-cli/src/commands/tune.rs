use clap::{Args, value_parser};
use pgflow_runtime::{
    inspect_flow,
    operations::{self, Tuning},
};
use serde_json::json;

use crate::{
    age,
    arguments::{Connection, Output},
    database,
    exit::Exit,
    failure::Failure,
    output::{self, Text},
    unknown,
};

#[derive(Debug, Args)]
pub(crate) struct Tune {
    /// The flow's slug.
    slug: String,
    /// Only this step; without it, the flow's options, which apply to each step that has none of
    /// its own.
    #[arg(long, value_name = "SLUG")]
    step: Option<String>,
    #[command(flatten)]
    options: Options,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
struct Options {
    /// The number of attempts of a task, including the first one.
    #[arg(long, value_name = "COUNT", value_parser = value_parser!(u32).range(1..=2_147_483_647))]
    max_attempts: Option<u32>,
    /// The delay that the backoff grows from: twice as long before the second attempt, and so on.
    /// Whole seconds: 30s, 5m; 0s for none.
    #[arg(long, value_name = "TIME", value_parser = age::parse_seconds)]
    base_delay: Option<u32>,
    /// The longest delay of the backoff: 10m, 1h.
    #[arg(long, value_name = "TIME", value_parser = age::parse_seconds)]
    max_delay: Option<u32>,
    /// The longest time for which a task may be postponed, without an attempt that counts, before
    /// it fails: 1d.
    #[arg(long, value_name = "TIME", value_parser = age::parse_seconds)]
    give_up_after: Option<u32>,
    /// The longest time for an attempt: 90s, 1h30m.
    #[arg(long, value_name = "TIME", value_parser = age::parse_seconds)]
    timeout: Option<u32>,
    /// The delay of the step after its dependencies have ended.
    #[arg(long, value_name = "TIME", value_parser = age::parse_seconds, requires = "step")]
    start_delay: Option<u32>,
}

impl Tune {
    pub(crate) async fn run(
        self,
        connection: &Connection,
        output: &Output,
    ) -> Result<Exit, Failure> {
        let mut database = database::ready(connection).await?;
        let mut tuning = Tuning::default();
        tuning.max_attempts = self.options.max_attempts;
        tuning.base_delay = self.options.base_delay;
        tuning.max_delay = self.options.max_delay;
        tuning.give_up_after = self.options.give_up_after;
        tuning.timeout = self.options.timeout;
        tuning.start_delay = self.options.start_delay;
        let step = self.step.as_deref();
        let tuned = operations::tune(&mut database, &self.slug, step, tuning).await;
        unknown::flow_of(tuned, &mut database, &self.slug).await?;
        let flow = inspect_flow::flow(&mut database, &self.slug).await?;
        // Deleted meanwhile.
        let flow = flow.ok_or_else(|| unknown::flow(&self.slug, &[]))?;
        let options = match step {
            Some(step) => flow.effective_options(step).unwrap_or(flow.options),
            None => flow.options,
        };
        if output.json {
            output::print_json(&json!({
                "flow_slug": self.slug, "step_slug": self.step, "effective_options": options,
            }))?;
        } else {
            let part = step.map_or_else(
                || format!("flow {}", self.slug),
                |step| format!("step {step} of flow {}", self.slug),
            );
            output::print(Text::from(format!(
                "{part}: {}, for attempts that start from now on",
                super::flow::options(options)
            )))?;
        }
        Ok(Exit::Done)
    }
}
