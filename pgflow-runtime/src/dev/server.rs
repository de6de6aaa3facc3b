//! A private server.

use std::fs::File;
use std::time::{Duration, Instant};

use sqlx::postgres::{PgConnectOptions, PgConnection, PgSslMode};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection};

use super::builder::DevBuilder;
use super::error::DevError;
use super::home::Home;
use super::postgres::Postgres;
use super::supervisor::Supervisor;
use super::url;

/// A slow machine under load still initialises a cluster well within this.
const START: Duration = Duration::from_mins(1);
const POLL: Duration = Duration::from_millis(5);
/// The interval at which the end of a server is noticed.
const WATCH: Duration = Duration::from_millis(250);
const SUPERUSER: &str = "postgres";
/// The database that every cluster has.
const MAINTENANCE: &str = "postgres";

/// Dropping it stops the server and waits for its exit.
#[derive(Debug)]
pub(super) struct Server {
    url: String,
    port: u16,
    home: Home,
    supervisor: Supervisor,
    /// Declared last, so released last: the next owner may come when the server has stopped.
    _owner: File,
}

impl Server {
    pub(super) async fn start(config: DevBuilder) -> Result<Self, DevError> {
        let database = config.database.clone();
        let server = blocking("starting a server", move || Self::launch(&config)).await?;
        let mut connection = server.connect_when_ready().await?;
        if let Some(name) = database {
            create_database(&mut connection, &name).await?;
        }
        // A failed farewell changes nothing: the session ends with its socket.
        let _ = connection.close().await;
        Ok(server)
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Stops the server and waits for its exit.
    pub(super) async fn stop(mut self) -> Result<(), DevError> {
        blocking("stopping a server", move || self.supervisor.stop()).await
    }

    fn launch(config: &DevBuilder) -> Result<Self, DevError> {
        let port = config.settings.port()?;
        let mut home = match &config.data_dir {
            Some(path) => Home::kept(path)?,
            None => Home::temporary(config.temp_dir.as_deref())?,
        };
        let arguments = config
            .settings
            .arguments(home.is_kept, home.socket_directory())?;
        let postgres = Postgres::find(home.written_by()?.as_ref())?;
        let database = config.database.as_deref().unwrap_or(MAINTENANCE);
        let url = url::of_socket(SUPERUSER, home.socket_directory(), port, database);
        let claim = home.claim(&url)?;
        let supervisor =
            Supervisor::start(&postgres.bin, &mut home, &claim, SUPERUSER, &arguments)?;
        Ok(Self {
            url,
            port,
            home,
            supervisor,
            _owner: claim.owner,
        })
    }

    async fn connect_when_ready(&self) -> Result<PgConnection, DevError> {
        let options = PgConnectOptions::new_without_pgpass()
            .socket(self.home.socket_directory())
            .port(self.port)
            .username(SUPERUSER)
            .database(MAINTENANCE)
            .ssl_mode(PgSslMode::Disable);
        let deadline = Instant::now() + START;
        loop {
            let refusal = if self.home.has_socket(self.port) {
                match options.connect().await {
                    Ok(connection) => return Ok(connection),
                    Err(error) => error.to_string(),
                }
            } else {
                "it has no socket".to_owned()
            };
            if let Ok(Some(status)) = self.home.exit_status() {
                return Err(self.not_started(format!("ended with exit status {status}")));
            }
            if Instant::now() > deadline {
                return Err(self.not_started(format!("accepts no connections ({refusal})")));
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Resolves when the server has ended without a request.
    pub(super) async fn ended(&self) -> DevError {
        loop {
            let status = match self.home.exit_status() {
                Ok(None) => {
                    tokio::time::sleep(WATCH).await;
                    continue;
                }
                Ok(Some(status)) => format!("with exit status {status}"),
                Err(error) => format!("(its exit status can't be read: {error})"),
            };
            let log = self.home.log_tail();
            return DevError::Ended { status, log };
        }
    }

    fn not_started(&self, problem: String) -> DevError {
        let log = self.home.log_tail();
        let uid = self.home.server_ids().0;
        // The locale of the server's tools is C, so this is what initdb says.
        if log.contains("could not look up effective user ID") {
            return DevError::NamelessUser { uid };
        }
        if log.contains("Too many open files") || log.contains("insufficient file descriptors") {
            let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
            let limit = limit.current.unwrap_or(u64::MAX);
            return DevError::TooFewFiles { limit };
        }
        DevError::NotStarted {
            problem,
            waited: START.as_secs(),
            log,
        }
    }
}

async fn create_database(connection: &mut PgConnection, name: &str) -> Result<(), DevError> {
    let failed = |source| DevError::Database {
        what: format!("creating database `{name}`"),
        expected: "a name that Postgres accepts",
        source,
    };
    let exists = "select exists (select from pg_database where datname = $1)";
    let exists: bool = sqlx::query_scalar(exists)
        .bind(name)
        .fetch_one(&mut *connection)
        .await
        .map_err(failed)?;
    if !exists {
        let create = format!("create database \"{}\"", name.replace('"', "\"\""));
        sqlx::raw_sql(AssertSqlSafe(create))
            .execute(connection)
            .await
            .map_err(failed)?;
    }
    Ok(())
}

/// Runs `work`, which waits for files and processes, where it keeps no task waiting.
async fn blocking<T: Send + 'static>(
    what: &'static str,
    work: impl FnOnce() -> Result<T, DevError> + Send + 'static,
) -> Result<T, DevError> {
    let result = tokio::task::spawn_blocking(work).await;
    result.map_err(|error| DevError::Io {
        what: what.to_owned(),
        expected: "a runtime that is not shutting down",
        source: error.into(),
    })?
}
