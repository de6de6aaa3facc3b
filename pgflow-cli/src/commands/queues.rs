use clap::Args;
use pgflow_runtime::inspect::{self, QueueDepth};

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
pub(crate) struct Queues {
    /// Only the queues of this flow.
    #[arg(long, value_name = "SLUG")]
    flow: Option<String>,
}

impl Queues {
    pub(crate) async fn run(
        self,
        connection: &Connection,
        output: &Output,
    ) -> Result<Exit, Failure> {
        let mut database = database::ready(connection).await?;
        let queues = inspect::queues(&mut database, self.flow.as_deref()).await?;
        if let (Some(flow), []) = (&self.flow, &queues[..]) {
            unknown::assert_flow(&mut database, flow).await?;
        }
        if output.json {
            output::print_json(&queues)?;
        } else {
            output::print(describe(&queues))?;
        }
        Ok(Exit::Done)
    }
}

fn describe(queues: &[QueueDepth]) -> Text {
    if queues.is_empty() {
        return Text::from("no queues");
    }
    let mut rows = table(&[
        "FLOW", "STEP", "QUEUE", "WORKERS", "VISIBLE", "HIDDEN", "RUNNING", "OLDEST",
    ]);
    let mut is_all_counted = true;
    for queue in queues {
        let (visible, hidden) = match (queue.visible_messages, queue.hidden_messages) {
            (None, _) => ("no queue".to_owned(), String::new()),
            (Some(visible), Some(hidden)) => (visible.to_string(), hidden.to_string()),
            (Some(visible), None) => {
                is_all_counted = false;
                (visible.to_string(), "?".to_owned())
            }
        };
        rows.add_row([
            queue.flow_slug.clone(),
            queue
                .step_slug
                .clone()
                .unwrap_or_else(|| "(all)".to_owned()),
            queue.queue_name.clone(),
            queue.live_workers.to_string(),
            visible,
            hidden,
            queue.running_tasks.to_string(),
            queue.oldest_visible_at.map(table::ago).unwrap_or_default(),
        ]);
    }
    let mut text = table::text(&rows);
    if !is_all_counted {
        text.blank();
        text.line("?: only the owner of the queues may count what is hidden in them");
    }
    text
}
