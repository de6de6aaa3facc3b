use pgflow_runtime::inspect_flow::{self, FlowSummary};

use crate::{
    age,
    arguments::{Connection, Output},
    database,
    exit::Exit,
    failure::Failure,
    output::{self, Text},
    table::{self, table},
};

pub(crate) async fn run(connection: &Connection, output: &Output) -> Result<Exit, Failure> {
    let mut database = database::ready(connection).await?;
    let flows = inspect_flow::flows(&mut database).await?;
    if output.json {
        output::print_json(&flows)?;
    } else {
        output::print(describe(&flows))?;
    }
    Ok(Exit::Done)
}

fn describe(flows: &[FlowSummary]) -> Text {
    if flows.is_empty() {
        return Text::from("no flows");
    }
    let mut rows = table(&[
        "FLOW",
        "QUEUE MODE",
        "STEPS",
        "ATTEMPTS",
        "BASE DELAY",
        "TIMEOUT",
        "WORKERS",
        "COVERED",
    ]);
    for flow in flows {
        let options = flow.options;
        rows.add_row([
            flow.flow_slug.clone(),
            flow.queue_mode.as_str().to_owned(),
            flow.steps.to_string(),
            options
                .max_attempts
                .map_or_else(String::new, |attempts| attempts.to_string()),
            options.base_delay.map_or_else(String::new, age::short),
            options.timeout.map_or_else(String::new, age::short),
            flow.live_workers.to_string(),
            if flow.is_covered { "yes" } else { "NO" }.to_owned(),
        ]);
    }
    table::text(&rows)
}
