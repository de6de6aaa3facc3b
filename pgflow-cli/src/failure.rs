//! Errors as the user sees them: what is wrong, its causes, and the database's hint.

use std::error::Error;

use pgflow_runtime::{
    migrate::{MigrateError, NotReadyError},
    sql::{CallError, RefusalCode},
};
use serde_json::json;
use sqlx::postgres::PgDatabaseError;

use crate::{
    exit::Exit,
    output::{self, Text},
};

/// An error and the exit code that it ends the command with.
#[derive(Debug)]
pub(crate) struct Failure {
    exit: Exit,
    error: anyhow::Error,
}

impl Failure {
    /// A mistake in how the command was called.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message)
    }

    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self {
            exit,
            error: anyhow::Error::msg(message.into()),
        }
    }

    pub(crate) fn exit(&self) -> Exit {
        self.exit
    }

    /// Writes to standard error, as one line of JSON or as text.
    pub(crate) fn report(&self, json: bool) {
        let (causes, hint) = (self.causes(), self.hint());
        if json {
            let report = json!({
                "error": self.text(),
                "causes": causes,
                "hint": hint,
                "exit_code": self.exit as u8,
            });
            output::say_for_programs(&report.to_string());
            return;
        }
        let mut text = Text::new();
        text.field("error: ", &self.text());
        for cause in causes {
            text.field("  caused by: ", &cause);
        }
        if let Some(hint) = hint {
            text.field("  hint: ", &hint);
        }
        output::say(text);
    }

    fn text(&self) -> String {
        self.without_line(self.error.to_string())
    }

    /// The sources, without those that the text before them ends with.
    fn causes(&self) -> Vec<String> {
        let mut causes = Vec::new();
        let mut before = self.text();
        for cause in self.error.chain().skip(1) {
            let text = self.without_line(cause.to_string());
            if !before.ends_with(&text) {
                causes.push(text.clone());
            }
            before = text;
        }
        causes
    }

    /// Returns the hint of Postgres; pgflow's own refusals have their hint in the message.
    fn hint(&self) -> Option<String> {
        self.of_postgres()
            .filter_map(PgDatabaseError::hint)
            .map(ToOwned::to_owned)
            .next()
    }

    /// Removes what sqlx appends to a message of Postgres: a line in the C source of the server,
    /// which reads like one in the user's SQL.
    fn without_line(&self, mut text: String) -> String {
        for line in self.of_postgres().filter_map(PgDatabaseError::line) {
            let end = format!(" at line {line}");
            if text.ends_with(&end) {
                text.truncate(text.len() - end.len());
            }
        }
        text
    }

    fn of_postgres(&self) -> impl Iterator<Item = &PgDatabaseError> {
        self.error.chain().filter_map(|cause| {
            let error = cause.downcast_ref::<sqlx::Error>()?;
            error.as_database_error()?.try_downcast_ref()
        })
    }
}

impl<E: Into<anyhow::Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        let error = error.into();
        let exit = exit_of(error.as_ref());
        Self { exit, error }
    }
}

fn exit_of(error: &(dyn Error + 'static)) -> Exit {
    if let Some(CallError::Refused(refusal)) = error.downcast_ref() {
        return match refusal.code() {
            // An unknown task is a step that the run does not have: no command names tasks.
            RefusalCode::UnknownFlow | RefusalCode::UnknownRun | RefusalCode::UnknownTask => {
                Exit::NotFound
            }
            _ => Exit::Failed,
        };
    }
    if let Some(not_ready) = error.downcast_ref::<NotReadyError>() {
        return match not_ready {
            NotReadyError::Database(_) => Exit::Failed,
            _ => Exit::NotReady,
        };
    }
    match error.downcast_ref() {
        Some(MigrateError::DatabaseNewer { .. }) => Exit::NotReady,
        _ => Exit::Failed,
    }
}
