//! Looks for a secret wherever pgflow tells something: logs, errors, rows, notifications.

use std::error::Error;

use sqlx::postgres::PgListener;
use sqlx::{AssertSqlSafe, PgPool};

use crate::support::TestDb;
use crate::support::events::set_event_level;
use crate::worker::capture::{Capture, capture_everything};

/// Part of every secret.
pub(super) const SECRET: &str = "hunter2";

/// The columns that hold what users pass from step to step: there, and in messages that others
/// sent, secrets may lie.
pub(super) const DATA: [&str; 5] = [
    "runs.input",
    "runs.output",
    "step_states.output",
    "step_tasks.input",
    "step_tasks.output",
];

const THE_END: &str = "the end";

/// Hears all that happens in a database and in this thread.
pub(super) struct Watch {
    pub(super) database: TestDb,
    lines: Capture,
    listener: PgListener,
    errors: Vec<String>,
}

/// The results of a search: secrets in forbidden places, and in allowed ones.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) data: Vec<String>,
    /// The number of messages from outside this project that contain the secret.
    pub(super) messages: i64,
    pub(super) notifications: usize,
}

impl Watch {
    pub(super) async fn new() -> Self {
        let lines = capture_everything();
        let database = TestDb::new().await;
        set_event_level(&database.pool, "all").await;
        let mut listener = PgListener::connect_with(&database.pool).await.unwrap();
        let channels = ["pgflow", "pgflow_work"];
        listener.listen_all(channels).await.unwrap();
        Self {
            database,
            lines,
            listener,
            errors: Vec::new(),
        }
    }

    /// Remembers all that an error and its sources say to somebody who prints them, in whichever
    /// form.
    pub(super) fn saw(&mut self, error: &(dyn Error + 'static)) {
        let mut link = Some(error);
        while let Some(error) = link {
            self.errors.push(format!("{error}\n{error:?}\n{error:#?}"));
            link = error.source();
        }
    }

    pub(super) fn lines(&self) -> &Capture {
        &self.lines
    }

    /// Fails if the secret is anywhere but in data.
    pub(super) async fn assert_kept(mut self) -> Found {
        let mut found = Found::default();
        let pool = self.database.pool.clone();
        let mut leaks: Vec<String> = self
            .errors
            .drain(..)
            .filter(|e| e.contains(SECRET))
            .collect();
        leaks.extend(self.lines.lines(SECRET));
        leaks.extend(
            explanations(&pool)
                .await
                .into_iter()
                .filter(|e| e.contains(SECRET)),
        );

        sqlx::query("select pg_notify('pgflow', $1)")
            .bind(THE_END)
            .execute(&pool)
            .await
            .unwrap();
        loop {
            let notification = self.listener.recv().await.unwrap();
            match notification.payload() {
                THE_END => break,
                payload if payload.contains(SECRET) => leaks.push(payload.to_owned()),
                _ => found.notifications += 1,
            }
        }

        for (relation, column) in columns(&pool).await {
            let query = format!(
                "select count(*) from pgflow.\"{relation}\" where \"{column}\"::text like '%{SECRET}%'"
            );
            let place = format!("{relation}.{column}");
            match count(&pool, query).await {
                0 => {}
                _ if DATA.contains(&place.as_str()) => found.data.push(place),
                rows => leaks.push(format!("{rows} rows of {place}")),
            }
        }
        for queue in queues(&pool).await {
            for table in ["q", "a"] {
                let holding = format!(
                    "select count(*) from pgmq.{table}_{queue} q where q::text like '%{SECRET}%'"
                );
                found.messages += count(&pool, holding).await;
            }
        }
        assert!(leaks.is_empty(), "{}", leaks.join("\n"));
        found
    }
}

async fn count(pool: &PgPool, query: String) -> i64 {
    let counted = sqlx::query_scalar(AssertSqlSafe(query)).fetch_one(pool);
    counted.await.unwrap()
}

/// Every column of every table and view that can hold text.
async fn columns(pool: &PgPool) -> Vec<(String, String)> {
    let columns: Vec<(String, String)> = sqlx::query_as(
        "select c.relname::text, a.attname::text from pg_class c join pg_attribute a on a.attrelid = c.oid \
         join pg_type t on t.oid = a.atttypid \
         where c.relnamespace = 'pgflow'::regnamespace and c.relkind in ('r', 'p', 'v', 'm') and a.attnum > 0 and not a.attisdropped \
             and (t.typcategory in ('S', 'A') or t.typname in ('json', 'jsonb')) order by 1, 2",
    )
    .fetch_all(pool)
    .await
    .unwrap();
    for (relation, column) in [
        ("workers", "function_name"),
        ("worker_functions", "disabled_reason"),
        ("installation", "event_level"),
        ("coverage", "queue_name"),
        ("worker_status", "state"),
        ("step_tasks", "error_message"),
    ] {
        let column = (relation.to_owned(), column.to_owned());
        assert!(columns.contains(&column), "{column:?} is not searched");
    }
    columns
}

async fn queues(pool: &PgPool) -> Vec<String> {
    sqlx::query_scalar("select queue_name::text from pgmq.meta")
        .fetch_all(pool)
        .await
        .unwrap()
}

/// Returns the explanations of every step of every run.
async fn explanations(pool: &PgPool) -> Vec<String> {
    sqlx::query_scalar(
        "select pgflow.explain_step(run_id, step_slug)::text from pgflow.step_states",
    )
    .fetch_all(pool)
    .await
    .unwrap()
}
