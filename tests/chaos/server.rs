//! A server that may crash.

use std::{fs, path::PathBuf, process::Command, time::Duration};

use pgflow::dev::DevDatabase;
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use crate::support::{eventually, memory, prepare};

/// The longest restart of a server on a busy machine.
const PATIENCE: Duration = Duration::from_mins(2);
pub(crate) const DATABASE: &str = "chaos";

/// A private server with data that outlives it. The other tests' server can't be used: it would
/// crash under them.
#[derive(Debug)]
pub(crate) struct Server {
    database: Option<DevDatabase>,
    /// Of the superuser, through the socket and not through the proxy.
    pub(crate) pool: PgPool,
    home: TempDir,
}

impl Server {
    pub(crate) async fn start() -> Self {
        let mut builder = tempfile::Builder::new();
        builder.prefix("pgflow-chaos-");
        let home = match memory() {
            Some(directory) => builder.tempdir_in(directory),
            None => builder.tempdir(),
        };
        let home = home.expect("a directory for the data");
        let database = start(&home).await;
        let options: PgConnectOptions = database.url().parse().expect("the server's own URL");
        let pool = PgPoolOptions::new()
            .max_connections(5)
            .connect_lazy_with(options);
        prepare(&pool).await;
        Self {
            database: Some(database),
            pool,
            home,
        }
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.home.path().join(".s.PGSQL.5432")
    }

    /// Ends all of the server's processes without a checkpoint, and starts it on the same data and
    /// socket: it recovers from its log.
    pub(crate) async fn crash(&mut self) {
        let pid = self.pid();
        // Immediate shutdown.
        signal("QUIT", pid);
        eventually(PATIENCE, "the crashed server is gone", async || {
            (!is_alive(pid)).then_some(())
        })
        .await;
        let database = self.database.take().expect("it was started");
        database
            .stop()
            .await
            .expect("there is nothing left to stop");
        self.database = Some(start(&self.home).await);
    }

    /// Kills the process behind one connection, as a system out of memory does: the server ends all
    /// others and recovers by itself. Returns whether there was one.
    pub(crate) async fn crash_a_session(&self) -> bool {
        let pid: Option<i32> = insist("a session to kill", async || {
            sqlx::query_scalar(
                "select pid from pg_stat_activity
                 where backend_type = 'client backend' and pid <> pg_backend_pid()
                 order by state = 'active' desc, query_start desc limit 1",
            )
            .fetch_optional(&self.pool)
            .await
        })
        .await;
        let Some(pid) = pid else {
            return false;
        };
        signal("KILL", pid.unsigned_abs());
        insist("the server has recovered", async || {
            sqlx::query("select 1").execute(&self.pool).await
        })
        .await;
        true
    }

    fn pid(&self) -> u32 {
        let path = self.home.path().join("data/postmaster.pid");
        let text =
            fs::read_to_string(path).expect("a running server has a file with its process id");
        let pid = text.lines().next().and_then(|line| line.parse().ok());
        pid.expect("the file begins with the process id")
    }
}

async fn start(home: &TempDir) -> DevDatabase {
    DevDatabase::builder()
        .ignore_environment()
        // Kept data keeps the defaults that protect it: commits are synchronous, and full pages are
        // written.
        .data_dir(home.path())
        // Only a crash of the machine needs it. What a killed server has written to its files, the
        // operating system still has.
        .setting("fsync", "off")
        .database(DATABASE)
        .start()
        .await
        .expect("a private server")
}

pub(crate) fn signal(name: &str, pid: u32) {
    let sent = Command::new("kill")
        .args(["-s", name, &pid.to_string()])
        .output();
    sent.expect("kill can be run");
}

fn is_alive(pid: u32) -> bool {
    let sent = Command::new("kill")
        .args(["-s", "0", &pid.to_string()])
        .output();
    sent.expect("kill can be run").status.success()
}

/// The result of a call that is made again until the server is there and answers it.
pub(crate) async fn insist<T>(what: &str, mut call: impl AsyncFnMut() -> sqlx::Result<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match call().await {
            Ok(value) => return value,
            Err(error) => assert!(Instant::now() < deadline, "{what}: {error}"),
        }
        sleep(Duration::from_millis(20)).await;
    }
}
