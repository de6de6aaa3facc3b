//! The file for other programs: what was measured, on what, and all that came out.

use std::{env, fs, path::Path, process::Command, thread};

use pgflow::sqlx::{self, PgPool};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{Group, Record, spread::Spread};
use crate::{Result, options::Options};

/// The settings that decide about speed, as far as the role may read them.
const SETTINGS: [&str; 16] = [
    "fsync",
    "synchronous_commit",
    "full_page_writes",
    "shared_buffers",
    "wal_buffers",
    "max_wal_size",
    "checkpoint_timeout",
    "wal_level",
    "wal_compression",
    "autovacuum",
    "jit",
    "plan_cache_mode",
    "random_page_cost",
    "max_connections",
    "shared_preload_libraries",
    "track_io_timing",
];

/// The conditions of all measurements.
#[derive(Debug, Serialize)]
pub(crate) struct About {
    server: String,
    private_server: bool,
    settings: Map<String, Value>,
    cores: Option<usize>,
    /// Of the source, with `-dirty` when files have changed since.
    git_revision: Option<String>,
    arguments: Vec<String>,
}

impl About {
    pub(crate) async fn read(pool: &PgPool, private_server: bool) -> Result<Self> {
        let settings: Vec<(String, String)> = sqlx::query_as(
            "select name, current_setting(name) from pg_settings where name = any ($1) order by name",
        )
        .bind(SETTINGS)
        .fetch_all(pool)
        .await?;
        Ok(Self {
            server: sqlx::query_scalar("select version()")
                .fetch_one(pool)
                .await?,
            private_server,
            settings: settings
                .into_iter()
                .map(|(name, value)| (name, value.into()))
                .collect(),
            cores: thread::available_parallelism().ok().map(usize::from),
            git_revision: git_revision(),
            arguments: arguments(),
        })
    }

    /// One line for people.
    pub(crate) fn line(&self) -> String {
        let version = self.server.split(" on ").next().unwrap_or(&self.server);
        let setting = |name: &str| {
            let value = self.settings.get(name).and_then(Value::as_str);
            format!("{name} {}", value.unwrap_or("?"))
        };
        format!(
            "{version}, {}, {}, {}; {} cores; {}",
            setting("fsync"),
            setting("synchronous_commit"),
            setting("shared_buffers"),
            self.cores.unwrap_or(0),
            self.git_revision.as_deref().unwrap_or("revision unknown"),
        )
    }
}

/// As given, without a URL, which may hold a password.
fn arguments() -> Vec<String> {
    let mut arguments = Vec::new();
    let mut is_url = false;
    for argument in env::args().skip(1).filter(|a| a != "--bench") {
        if is_url || argument.starts_with("--url=") {
            arguments.push("(url)".to_owned());
            is_url = false;
        } else {
            is_url = argument == "--url";
            arguments.push(argument);
        }
    }
    arguments
}

fn git_revision() -> Option<String> {
    let git = Command::new("git")
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args([
            "describe",
            "--always",
            "--dirty",
            "--abbrev=40",
            "--exclude=*",
        ])
        .output()
        .ok()?;
    let revision = String::from_utf8(git.stdout).ok()?;
    let revision = revision.trim();
    (git.status.success() && !revision.is_empty()).then(|| revision.to_owned())
}

pub(crate) fn write(
    file: &Path,
    about: &About,
    options: &Options,
    notes: &[String],
    records: &[Record],
) -> Result<()> {
    let medians: Vec<Value> = Group::all(records).iter().map(median).collect();
    let document = json!({
        "about": about,
        "options": options,
        "notes": notes,
        "medians": medians,
        "repetitions": records,
    });
    fs::write(file, serde_json::to_string_pretty(&document)? + "\n")
        .map_err(|error| format!("{} can't be written: {error}", file.display()))?;
    Ok(())
}

fn median(group: &Group<'_>) -> Value {
    let record = group.first();
    let figures: Map<String, Value> = record
        .figures
        .iter()
        .enumerate()
        .map(|(n, figure)| (figure.name.clone(), spread(group.spread(n))))
        .collect();
    json!({
        "kind": record.kind,
        "scenario": record.scenario,
        "what": record.what,
        "variant": record.variant,
        "counts": record.counts,
        "figures": figures,
    })
}

fn spread(spread: Option<Spread>) -> Value {
    json!(spread)
}
