use clap::Args;
use pgflow_runtime::inspect::{self, Route};

use crate::{
    arguments::{Connection, Output},
    database,
    exit::Exit,
    failure::Failure,
    output::{self, Text},
    table::{self, table},
    unknown,
};

#[derive(Debug, Args)]
pub(crate) struct Coverage {
    /// Only the queues of this flow.
    flow: Option<String>,
}

impl Coverage {
    pub(crate) async fn run(
        self,
        connection: &Connection,
        output: &Output,
    ) -> Result<Exit, Failure> {
        let mut database = database::ready(connection).await?;
        let routes = inspect::coverage(&mut database, self.flow.as_deref()).await?;
        if let (Some(flow), []) = (&self.flow, &routes[..]) {
            unknown::assert_flow(&mut database, flow).await?;
        }
        if output.json {
            output::print_json(&routes)?;
        } else {
            output::print(describe(&routes))?;
        }
        Ok(if routes.iter().any(is_waiting_in_vain) {
            Exit::NotCovered
        } else {
            Exit::Done
        })
    }
}

/// A queue without a worker is a fault only while messages wait in it: an older version of a flow
/// stays defined after its last run. For a missing queue the number of waiting messages is unknown.
fn is_waiting_in_vain(route: &Route) -> bool {
    !route.is_covered && route.waiting_messages != Some(0)
}

fn describe(routes: &[Route]) -> Text {
    if routes.is_empty() {
        return Text::from("no flows");
    }
    let mut rows = table(&[
        "FLOW", "STEP", "QUEUE", "WORKERS", "WAITING", "SINCE", "COVERED",
    ]);
    for route in routes {
        rows.add_row([
            route.flow_slug.clone(),
            route
                .step_slug
                .clone()
                .unwrap_or_else(|| "(all)".to_owned()),
            route.queue_name.clone(),
            route.live_workers.to_string(),
            route
                .waiting_messages
                .map_or_else(|| "no queue".to_owned(), |waiting| waiting.to_string()),
            route.oldest_waiting_at.map(table::time).unwrap_or_default(),
            if route.is_covered { "yes" } else { "NO" }.to_owned(),
        ]);
    }
    table::text(&rows)
}
