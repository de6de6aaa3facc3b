//! Migrations: fresh, again, at once, with few privileges, over what does not fit; manually through
//! the script.

mod blank;
mod fresh;
mod functions;
mod history;
mod installed;
mod levels;
mod locale;
mod lock;
mod pgmq;
mod privileges;
mod public_rights;
mod script;
mod script_refusals;
mod step_queues;
mod throughput;
mod workers;

use std::error::Error;

use blank::{Blank, blank};
use pgflow_migrations::Migration;

/// The least that a first migration may be.
const TABLES: Migration = Migration {
    version: 1,
    name: "tables",
    sql: "create table pgflow.installation (environment text, protocol_version int);
          insert into pgflow.installation values ('production', 0);",
};

/// The message and those of its sources: what a person gets to read.
fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}
