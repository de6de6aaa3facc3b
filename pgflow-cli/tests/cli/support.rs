use std::{
    io::Write as _,
    process::{Command, Stdio},
    sync::{
        LazyLock,
        atomic::{AtomicU32, Ordering},
    },
};

use pgflow_runtime::{dev::DevDatabase, migrate};
use serde_json::Value;
use sqlx::{AssertSqlSafe, Connection, PgConnection, PgPool};
use tokio::runtime::Runtime;

/// One server for the test binary; it stops when the process ends.
struct Server {
    runtime: Runtime,
    database: DevDatabase,
}

static SERVER: LazyLock<Server> = LazyLock::new(|| {
    let runtime = Runtime::new().unwrap();
    let database = runtime
        .block_on(DevDatabase::builder().ignore_environment().start())
        .unwrap();
    Server { runtime, database }
});

/// A database of its own for one test.
pub(crate) struct Database {
    pub(crate) url: String,
}

impl Database {
    pub(crate) fn blank() -> Self {
        static COUNTER: AtomicU32 = AtomicU32::new(0);
        let name = format!("cli_{}", COUNTER.fetch_add(1, Ordering::Relaxed));
        let server = Self {
            url: SERVER.database.url().to_owned(),
        };
        server.execute(&format!("create database {name}"));
        let (place, _) = server.url.rsplit_once('/').unwrap();
        Self {
            url: format!("{place}/{name}"),
        }
    }

    pub(crate) fn migrated() -> Self {
        let database = Self::blank();
        SERVER.runtime.block_on(async {
            let pool = PgPool::connect(&database.url).await.unwrap();
            migrate::migrate(&pool).await.unwrap();
            pool.close().await;
        });
        database
    }

    /// With flow `sums`: step `numbers` and the map step `doubled` over it.
    pub(crate) fn with_flow() -> Self {
        let database = Self::migrated();
        database.execute(
            "select pgflow.create_flow('sums');
             select pgflow.add_step('sums', 'numbers');
             select pgflow.add_step('sums', 'doubled', array['numbers'], step_type => 'map')",
        );
        database
    }

    pub(crate) fn execute(&self, sql: &str) {
        SERVER.runtime.block_on(async {
            let mut connection = PgConnection::connect(&self.url).await.unwrap();
            sqlx::raw_sql(AssertSqlSafe(sql.to_owned()))
                .execute(&mut connection)
                .await
                .unwrap();
            connection.close().await.unwrap();
        });
    }

    /// Calls the command with this database.
    pub(crate) fn pgflow(&self, arguments: &[&str]) -> Ran {
        self.pgflow_reading(arguments, "")
    }

    pub(crate) fn pgflow_reading(&self, arguments: &[&str], stdin: &str) -> Ran {
        run(command(arguments).env("DATABASE_URL", &self.url), stdin)
    }
}

/// Calls the command without a database.
pub(crate) fn pgflow(arguments: &[&str]) -> Ran {
    run(&mut command(arguments), "")
}

/// The command, kept apart from the environment of the tests.
pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pgflow"));
    command
        .args(arguments)
        .env_remove("DATABASE_URL")
        .env_remove("RUST_LOG")
        .env_remove("RUST_BACKTRACE");
    command
}

fn run(command: &mut Command, stdin: &str) -> Ran {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(stdin.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    Ran {
        code: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// What a call came to.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    /// Standard output of a call that succeeded.
    #[track_caller]
    pub(crate) fn done(self) -> String {
        assert_eq!((self.code, self.stderr.as_str()), (0, ""), "{self:?}");
        self.stdout
    }

    /// Standard error of a call that failed, and wrote nothing else.
    #[track_caller]
    pub(crate) fn failed(self, code: i32) -> String {
        assert_eq!((self.code, self.stdout.as_str()), (code, ""), "{self:?}");
        self.stderr
    }
}

#[track_caller]
pub(crate) fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// The cells of each line of a table.
pub(crate) fn cells(text: &str) -> Vec<Vec<&str>> {
    text.lines()
        .map(|line| line.split_whitespace().collect())
        .collect()
}
