use clap::Args;
use pgflow_runtime::{
    inspect::{self, QueueDepth},
    operations::{self, UnsupportedMessage},
};

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
    /// Show the messages that no worker can take, of this queue or of all: with one of them a
    /// worker stops.
    #[arg(long, value_name = "QUEUE", num_args = 0..=1, conflicts_with = "flow")]
    #[expect(
        clippy::option_option,
        reason = "clap's form of an option whose value may be left out"
    )]
    inspect: Option<Option<String>>,
    /// With --inspect, also what stands in them, which may be anything.
    #[arg(long, requires = "inspect")]
    body: bool,
}

impl Queues {
    pub(crate) async fn run(
        self,
        connection: &Connection,
        output: &Output,
    ) -> Result<Exit, Failure> {
        if let Some(queue) = &self.inspect {
            return self.inspect(queue.as_deref(), connection, output).await;
        }
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

impl Queues {
    async fn inspect(
        &self,
        queue: Option<&str>,
        connection: &Connection,
        output: &Output,
    ) -> Result<Exit, Failure> {
        let pool = database::ready_pool(connection).await?;
        let messages = operations::unsupported_messages(&pool, queue, self.body).await?;
        if let (Some(queue), []) = (queue, &messages[..]) {
            let routes = inspect::coverage(&pool, None).await?;
            let known: Vec<String> = routes.into_iter().map(|route| route.queue_name).collect();
            if !known.contains(&queue.to_ascii_lowercase()) {
                return Err(unknown::queue(queue, &known));
            }
        }
        if output.json {
            output::print_json(&messages)?;
        } else {
            output::print(describe_unsupported(&messages, self.body))?;
        }
        Ok(Exit::Done)
    }
}

fn describe_unsupported(messages: &[UnsupportedMessage], with_body: bool) -> Text {
    if messages.is_empty() {
        return Text::from("no message that no worker can take");
    }
    let mut header = vec!["QUEUE", "MESSAGE", "TASK", "READ", "SENT", "REASON"];
    header.extend(with_body.then_some("BODY"));
    let mut rows = table(&header);
    for message in messages {
        let mut row = vec![
            message.queue_name.clone(),
            message.message_id.to_string(),
            if message.has_task { "yes" } else { "none" }.to_owned(),
            message.read_count.to_string(),
            table::ago(message.enqueued_at),
            message.reason.clone(),
        ];
        if with_body {
            let body = message.body.as_ref().map(ToString::to_string);
            row.push(table::short(&body.unwrap_or_default(), 200));
        }
        rows.add_row(row);
    }
    let mut text = table::text(&rows);
    text.blank();
    if messages.iter().any(|message| !message.has_task) {
        text.line(
            "to archive those without a task: pgflow workers enable NAME --archive-unsupported",
        );
    }
    if messages.iter().any(|message| message.has_task) {
        text.line("those of tasks need the build, or the routing, that they were made for");
    }
    text
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
