use std::fmt;

use sqlx::PgConnection;

use super::{MigrateError, PgmqState};
use crate::migrate::unnamed;

/// A function of PGMQ that pgflow calls, with the types of the arguments that it passes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Required {
    name: &'static str,
    arguments: &'static [&'static str],
}

/// Everything of PGMQ that pgflow's SQL calls; a test compares it with the files.
pub(crate) const REQUIRED: &[Required] = &[
    required("archive", &["text", "bigint[]"]),
    required("create", &["text"]),
    required("drop_queue", &["text"]),
    required("format_table_name", &["text", "text"]),
    required("list_queues", &[]),
    required("send_batch", &["text", "jsonb[]", "integer"]),
    required("set_vt", &["text", "bigint", "integer"]),
    required("validate_queue_name", &["text"]),
];

/// The functions that pgflow's SQL calls if they exist: versions of PGMQ without them create queues
/// without a lock.
#[cfg(test)]
const OPTIONAL: &[&str] = &["acquire_queue_lock"];

const fn required(name: &'static str, arguments: &'static [&'static str]) -> Required {
    Required { name, arguments }
}

impl Required {
    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    pub(crate) fn arguments(&self) -> &'static [&'static str] {
        self.arguments
    }
}

impl fmt::Display for Required {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pgmq.{}({})", self.name, self.arguments.join(", "))
    }
}

/// A function that the schema has.
#[derive(Debug, sqlx::FromRow)]
struct Candidate {
    name: String,
    arguments: Vec<String>,
    defaults: i16,
}

impl Candidate {
    /// Returns whether a call with these arguments reaches it; later versions may add arguments
    /// with defaults.
    fn accepts(&self, call: &Required) -> bool {
        let needed = self.arguments.len() - usize::try_from(self.defaults).unwrap_or_default();
        self.name == call.name
            && (needed..=self.arguments.len()).contains(&call.arguments.len())
            && self
                .arguments
                .iter()
                .zip(call.arguments)
                .all(|(has, passed)| has == passed)
    }
}

#[derive(Debug, sqlx::FromRow)]
struct Schema {
    extension_version: Option<String>,
    has_meta: bool,
    tracked: bool,
}

/// Looks at the catalog only, so that it needs no privilege on the schema.
pub(crate) async fn probe(connection: &mut PgConnection) -> Result<PgmqState, MigrateError> {
    let doing = MigrateError::doing("looking for PGMQ");
    let schema: Schema = unnamed::query_as(include_str!("../sql/pgmq_schema.sql"))
        .fetch_one(&mut *connection)
        .await
        .map_err(&doing)?;
    let candidates: Vec<Candidate> = unnamed::query_as(include_str!("../sql/pgmq_functions.sql"))
        .fetch_all(&mut *connection)
        .await
        .map_err(&doing)?;

    let missing = missing(&candidates, schema.has_meta);
    if candidates.is_empty() && !schema.has_meta && schema.extension_version.is_none() {
        return Ok(PgmqState::Absent);
    }
    if !missing.is_empty() {
        return Ok(PgmqState::Incomplete { missing });
    }
    if let Some(version) = schema.extension_version {
        return Ok(PgmqState::Extension { version });
    }
    let version = if schema.tracked {
        unnamed::query_scalar(
            "select version from pgmq.__pgmq_migrations order by run_at desc limit 1",
        )
        .fetch_optional(connection)
        .await
        .map_err(&doing)?
    } else {
        None
    };
    Ok(PgmqState::Sql { version })
}

fn missing(candidates: &[Candidate], has_meta: bool) -> Vec<String> {
    let functions = REQUIRED
        .iter()
        .filter(|call| !candidates.iter().any(|candidate| candidate.accepts(call)))
        .map(ToString::to_string);
    let table = (!has_meta).then(|| "table pgmq.meta".to_owned());
    functions.chain(table).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use pgflow_migrations::{FUNCTIONS, MIGRATIONS};

    use super::*;

    fn candidate(name: &str, arguments: &[&str], defaults: i16) -> Candidate {
        Candidate {
            name: name.to_owned(),
            arguments: arguments.iter().map(ToString::to_string).collect(),
            defaults,
        }
    }

    #[test]
    fn a_call_may_leave_out_defaults_only() {
        let call = required("drop_queue", &["text"]);
        assert!(candidate("drop_queue", &["text"], 0).accepts(&call));
        assert!(candidate("drop_queue", &["text", "boolean"], 1).accepts(&call));
        assert!(!candidate("drop_queue", &["text", "boolean"], 0).accepts(&call));
        assert!(!candidate("drop_queue", &[], 0).accepts(&call));
        assert!(!candidate("drop_queue", &["bigint"], 0).accepts(&call));
        assert!(!candidate("create", &["text"], 0).accepts(&call));
    }

    #[test]
    fn what_is_missing_is_named() {
        let all: Vec<_> = REQUIRED
            .iter()
            .map(|call| candidate(call.name, call.arguments, 0))
            .collect();
        assert!(missing(&all, true).is_empty());
        assert_eq!(missing(&all, false), ["table pgmq.meta"]);
        let without_archive = &all[1..];
        assert_eq!(
            missing(without_archive, true),
            ["pgmq.archive(text, bigint[])"]
        );
    }

    #[test]
    fn the_sql_files_call_nothing_else() {
        let required = REQUIRED.iter().map(|call| call.name);
        let known: BTreeSet<&str> = required.chain(OPTIONAL.iter().copied()).collect();
        let files = MIGRATIONS.iter().map(|file| (file.name, file.sql));
        for (file, sql) in files.chain(FUNCTIONS.iter().map(|file| (file.name, file.sql))) {
            for line in sql
                .lines()
                .filter(|line| !line.trim_start().starts_with("--"))
            {
                for call in line.split("pgmq.").skip(1) {
                    let name = call
                        .split(|c: char| !c.is_alphanumeric() && c != '_')
                        .next();
                    let is_call = call
                        .trim_start_matches(|c: char| c.is_alphanumeric() || c == '_')
                        .starts_with('(');
                    assert!(
                        !is_call || name.is_some_and(|name| known.contains(name)),
                        "{file} calls pgmq.{name:?}: add it to REQUIRED, or the probe misses that it is not there"
                    );
                }
            }
        }
    }
}
