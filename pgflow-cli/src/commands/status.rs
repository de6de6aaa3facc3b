use pgflow_runtime::migrate::{self, RecordedState, Status};
use serde_json::json;

use crate::{
    arguments::{Connection, Output},
    database,
    exit::Exit,
    failure::Failure,
    output::{self, Text},
    table::{self, table},
};

pub(crate) async fn run(connection: &Connection, output: &Output) -> Result<Exit, Failure> {
    let status = migrate::status(&database::pool(connection).await?).await?;
    let is_current = status.is_current();
    if output.json {
        let mut value = serde_json::to_value(&status)?;
        value["is_current"] = json!(is_current);
        output::print_json(&value)?;
    } else {
        output::print(describe(&status))?;
    }
    Ok(if is_current {
        Exit::Done
    } else {
        Exit::NotReady
    })
}

fn describe(status: &Status) -> Text {
    let mut text = Text::new();
    text.line(format!("Postgres     {}", status.server_version));
    text.line(format!("PGMQ         {}", status.pgmq));
    if let Some(installation) = &status.installation {
        text.line(format!("environment  {}", installation.environment));
        text.line(format!(
            "protocol     {} (this command: {})",
            installation.protocol_version, status.code_protocol_version
        ));
    }
    text.line(format!("functions    {}", functions(status)));
    if !(status.applied.is_empty() && status.pending.is_empty()) {
        text.blank();
        text.append(migrations(status));
        text.blank();
    }
    for object in &status.open_to_everybody {
        text.line(format!("open to everybody: {object}"));
    }
    for grant in &status.missing_grants {
        text.line(format!("missing on PGMQ: {grant}"));
    }
    for warning in &status.warnings {
        text.field("warning: ", warning);
    }
    text.line(verdict(status));
    text
}

fn functions(status: &Status) -> String {
    if status.changed_functions.is_empty() && status.gone_functions.is_empty() {
        return "up to date".to_owned();
    }
    let counts = [
        (status.changed_functions.len(), "to apply"),
        (status.gone_functions.len(), "to drop"),
    ];
    let parts: Vec<String> = counts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    parts.join(", ")
}

fn migrations(status: &Status) -> Text {
    let mut rows = table(&["MIGRATION", "STATE", "APPLIED"]);
    for recorded in &status.applied {
        let state = match recorded.state {
            RecordedState::Applied => "applied",
            RecordedState::Edited => "edited after it was applied",
            RecordedState::Unknown => "unknown to this command",
            _ => "other",
        };
        rows.add_row([
            format!("{:04}_{}", recorded.version, recorded.name),
            state.to_owned(),
            table::time(recorded.applied_at),
        ]);
    }
    for pending in &status.pending {
        rows.add_row([pending.to_string(), "pending".to_owned(), String::new()]);
    }
    table::text(&rows)
}

fn verdict(status: &Status) -> String {
    let has = |wanted| {
        status
            .applied
            .iter()
            .any(|recorded| recorded.state == wanted)
    };
    if status.is_current() {
        format!("up to date at migration {}", status.code_version)
    } else if has(RecordedState::Unknown) {
        "the database is newer than this command: update pgflow".to_owned()
    } else if has(RecordedState::Edited) {
        "an applied migration differs from the file in this command: use the command of a release"
            .to_owned()
    } else if !status.missing_grants.is_empty() {
        "the owner of schema pgflow lacks rights on PGMQ, without which no worker starts: run these \
         statements as the owner of PGMQ"
            .to_owned()
    } else {
        "not up to date: run `pgflow migrate`".to_owned()
    }
}
