//! The connections of workers, as the server sees them.

use std::process::Command;

use sqlx::PgPool;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};

use super::DEADLINE;
use crate::support::{TestDb, eventually};

/// A pool whose connections, and those that are made beside it, go by a name.
pub(super) fn named_pool(database: &TestDb, name: &str, connections: u32) -> PgPool {
    let options: PgConnectOptions = database.url.parse().expect("the test's own URL");
    PgPoolOptions::new()
        .max_connections(connections)
        .connect_lazy_with(options.application_name(name))
}

/// Returns the number of connections with this name.
pub(super) async fn connections(database: &TestDb, name: &str) -> i64 {
    sqlx::query_scalar(
        "select count(*) from pg_stat_activity where application_name = $1 and datname = current_database()",
    )
    .bind(name)
    .fetch_one(&database.pool)
    .await
    .expect("the activity can be read")
}

/// The connections that listen, by what they did last: nothing but a hub's does any of this.
pub(super) async fn listening(database: &TestDb, name: &str) -> Vec<i32> {
    sqlx::query_scalar(
        "select pid from pg_stat_activity where application_name = $1 and datname = current_database() \
         and (query like 'LISTEN \"pgflow_work\"%' or query ~ 'pgflow\\.(worker_heartbeats|lost_attempts|recovery_is_due|workers_with_work)') \
         order by pid",
    )
    .bind(name)
    .fetch_all(&database.pool)
    .await
    .expect("the activity can be read")
}

/// Waits until the workers of a pool listen on one connection, another than `than`; returns its
/// process id.
pub(super) async fn until_listening(database: &TestDb, name: &str, than: Option<i32>) -> i32 {
    eventually(
        DEADLINE,
        format!("{name} listens"),
        async || match listening(database, name).await[..] {
            [pid] if Some(pid) != than => Some(pid),
            _ => None,
        },
    )
    .await
}

pub(super) async fn terminate(database: &TestDb, pid: i32) {
    let is_terminated: bool = sqlx::query_scalar("select pg_terminate_backend($1)")
        .bind(pid)
        .fetch_one(&database.pool)
        .await
        .expect("the superuser may do that");
    assert!(is_terminated);
}

/// A server process that stands still until this is dropped: its client gets no answer, and no
/// error either.
pub(super) struct StandsStill(i32);

pub(super) fn stop_process(pid: i32) -> StandsStill {
    signal("STOP", pid);
    StandsStill(pid)
}

impl Drop for StandsStill {
    fn drop(&mut self) {
        signal("CONT", self.0);
    }
}

fn signal(signal: &str, pid: i32) {
    let pid = pid.to_string();
    let kill = Command::new("kill").args(["-s", signal, &pid]).status();
    assert!(kill.expect("kill can be run").success());
}
