//! The one server of a test program.

use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use pgflow_runtime::dev::DevDatabase;
use pgflow_runtime::migrate::migrate;
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPool};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection};
use tokio::sync::OnceCell;

use super::invariants::TRANSITION_LOG;
use crate::mutations;

const TEMPLATE: &str = "migrated";
/// Linux' file system in memory. A database is a thousand files; creating them on a busy disk takes
/// longer than most tests.
const MEMORY: &str = "/dev/shm";

/// Never dropped, as nothing static is; the server stops because its owner, this process, ends.
static CLUSTER: OnceCell<Cluster> = OnceCell::const_new();

/// Tests have a runtime each, so no connection may stay here: it would belong to the runtime of one
/// test.
#[derive(Debug)]
pub(super) struct Cluster {
    server: DevDatabase,
    template: OnceCell<()>,
    /// Databases whose test has ended.
    obsolete: Mutex<Vec<String>>,
    next: AtomicU32,
}

impl Cluster {
    pub(super) async fn get() -> &'static Self {
        CLUSTER.get_or_init(Self::start).await
    }

    async fn start() -> Self {
        let mut builder = DevDatabase::builder()
            .ignore_environment()
            .setting("max_connections", "500")
            // For the test of two-phase commit.
            .setting("max_prepared_transactions", "5")
            // Every clone passes through the log, which would otherwise grow to 1 GB.
            .setting("max_wal_size", "64MB");
        if let Some(directory) = memory() {
            builder = builder.temp_dir(directory);
        }
        Self {
            server: builder.start().await.expect("a private server"),
            template: OnceCell::new(),
            obsolete: Mutex::default(),
            next: AtomicU32::new(1),
        }
    }

    /// Creates a database, a clone of the migrated one or an empty one, and returns its name.
    pub(super) async fn create(&self, is_migrated: bool) -> String {
        if is_migrated {
            self.template.get_or_init(|| self.create_template()).await;
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let name = format!("test_{number}");
        let mut admin = self.connect("postgres").await;
        self.drop_obsolete(&mut admin).await;
        let template = if is_migrated { TEMPLATE } else { "template1" };
        let clone = clone_of(&admin, template, &name);
        execute(&mut admin, &clone).await;
        close(admin).await;
        name
    }

    /// Lets a later [`create`](Self::create) drop the database.
    pub(super) fn give_back(&self, name: &str) {
        let mut obsolete = self.obsolete.lock().expect("nobody panics with the list");
        obsolete.push(name.to_owned());
    }

    pub(super) fn options(&self, database: &str) -> PgConnectOptions {
        self.url(database).parse().expect("the server's own URL")
    }

    pub(super) fn url(&self, database: &str) -> String {
        let url = self.server.url();
        let (server, _) = url.rsplit_once('/').expect("a URL ends with a database");
        format!("{server}/{database}")
    }

    pub(super) async fn connect(&self, database: &str) -> PgConnection {
        let options = self.options(database);
        options.connect().await.expect("the server is running")
    }

    async fn create_template(&self) {
        let mut admin = self.connect("postgres").await;
        execute(&mut admin, &format!("create database {TEMPLATE}")).await;
        let pool = PgPool::connect_with(self.options(TEMPLATE)).await;
        let pool = pool.expect("the template can be connected to");
        prepare(&pool).await;
        pool.close().await;
        // A database with connections can't be cloned; this one gets none from here on.
        let closed =
            format!("alter database {TEMPLATE} with is_template true allow_connections false");
        execute(&mut admin, &closed).await;
        close(admin).await;
    }

    async fn drop_obsolete(&self, admin: &mut PgConnection) {
        let names = {
            let mut obsolete = self.obsolete.lock().expect("nobody panics with the list");
            std::mem::take(&mut *obsolete)
        };
        for name in names {
            execute(admin, &format!("drop database {name} with (force)")).await;
        }
    }
}

/// Migrates an empty database, and adds what tests need: the log of transitions, and the fault that
/// is to be found.
pub(crate) async fn prepare(pool: &PgPool) {
    migrate(pool)
        .await
        .expect("an empty database can be migrated");
    let log = sqlx::raw_sql(TRANSITION_LOG).execute(pool).await;
    log.expect("the log of transitions can be added");
    if let Some(mutation) = mutations::chosen() {
        let sql = mutation.sql().expect("the fault can be written");
        let planted = sqlx::raw_sql(AssertSqlSafe(sql)).execute(pool).await;
        planted.expect("the fault can be planted");
    }
}

/// Returns the directory in memory for the data of the tests' servers, if there is one.
pub(crate) fn memory() -> Option<&'static str> {
    has_room(MEMORY).then_some(MEMORY)
}

/// Returns whether there is a file system with room enough for the largest tests. Containers often
/// have a tiny one.
fn has_room(path: &str) -> bool {
    const ENOUGH_KIB: u64 = 4 * 1024 * 1024;
    let Ok(output) = Command::new("df").args(["-Pk", path]).output() else {
        return false;
    };
    // File system, size, used, available, ..
    let text = String::from_utf8_lossy(&output.stdout);
    let available = text
        .lines()
        .nth(1)
        .and_then(|line| line.split_whitespace().nth(3));
    available.is_some_and(|kib| kib.parse::<u64>().is_ok_and(|kib| kib >= ENOUGH_KIB))
}

/// Copying files beats the default of Postgres 15 and newer, which logs every page; older ones
/// always copy.
fn clone_of(server: &PgConnection, template: &str, name: &str) -> String {
    let can_choose = server
        .server_version_num()
        .is_some_and(|version| version >= 150_000);
    let strategy = if can_choose { "strategy file_copy" } else { "" };
    format!("create database {name} template {template} {strategy}")
}

pub(super) async fn execute(connection: &mut PgConnection, sql: &str) {
    let result = sqlx::raw_sql(AssertSqlSafe(sql)).execute(connection).await;
    if let Err(error) = result {
        panic!("{sql}: {error}");
    }
}

pub(super) async fn close(connection: PgConnection) {
    connection
        .close()
        .await
        .expect("a connection in good order");
}
