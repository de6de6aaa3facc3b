use clap::Args;
use pgflow_runtime::inspect::{self, Route};

use crate::{
    arguments::{Connection, Output},
    database,
    exit::Exit,
    failure::Failure,
    output,
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
            output::print(&describe(&routes))?;
        }
        Ok(if routes.iter().all(|route| route.is_covered) {
            Exit::Done
        } else {
            Exit::NotCovered
        })
    }
}

fn describe(routes: &[Route]) -> String {
    if routes.is_empty() {
        return "no flows".to_owned();
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
