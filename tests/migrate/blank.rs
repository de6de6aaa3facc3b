//! Databases without pgflow, and what the tests of migrations ask them.

use std::{io::Write as _, path::PathBuf, process::Command, sync::Arc, time::Duration};

use sqlx::{
    AssertSqlSafe, Connection, PgConnection, PgPool,
    postgres::{PgConnectOptions, PgPoolOptions},
};

use crate::support::{TestDb, eventually};

/// A database of its own for one test, without pgflow.
#[derive(Clone)]
pub(crate) struct Blank {
    pub(crate) pool: PgPool,
    pub(crate) options: PgConnectOptions,
    pub(crate) name: String,
    /// Dropped with the last clone.
    _database: Arc<TestDb>,
}

pub(crate) async fn blank() -> Blank {
    let database = TestDb::blank().await;
    Blank {
        pool: database.pool.clone(),
        options: database.url.parse().unwrap(),
        name: database.name.clone(),
        _database: Arc::new(database),
    }
}

impl Blank {
    /// Runs any number of statements.
    pub(crate) async fn run(&self, sql: impl Into<String>) {
        sqlx::raw_sql(AssertSqlSafe(sql.into()))
            .execute(&self.pool)
            .await
            .unwrap();
    }

    /// Runs any number of statements in a connection of their own.
    pub(crate) async fn run_alone(&self, sql: impl Into<String>) {
        let mut connection = PgConnection::connect_with(&self.options).await.unwrap();
        sqlx::raw_sql(AssertSqlSafe(sql.into()))
            .execute(&mut connection)
            .await
            .unwrap();
    }

    /// The message of the error that the statements must end with, in a connection of their own.
    pub(crate) async fn error_of(&self, sql: impl Into<String>) -> String {
        let mut connection = PgConnection::connect_with(&self.options).await.unwrap();
        let ran = sqlx::raw_sql(AssertSqlSafe(sql.into()))
            .execute(&mut connection)
            .await;
        ran.expect_err("the statements must fail").to_string()
    }

    pub(crate) async fn text(&self, sql: &'static str) -> String {
        sqlx::query_scalar(sql).fetch_one(&self.pool).await.unwrap()
    }

    pub(crate) async fn count(&self, sql: &'static str) -> i64 {
        sqlx::query_scalar(sql).fetch_one(&self.pool).await.unwrap()
    }

    /// Makes PGMQ what its SQL alone would have installed, also where the server has the extension.
    pub(crate) async fn forget_extension(&self) {
        self.run(
            "do $$
             declare
                 v_statement text;
             begin
                 for v_statement in
                     select format('alter extension pgmq drop %s %s', member.type, member.identity)
                     from pg_extension extension
                     join pg_depend depend on depend.refobjid = extension.oid
                         and depend.refclassid = 'pg_extension'::regclass and depend.deptype = 'e'
                     cross join pg_identify_object(depend.classid, depend.objid, 0) member
                     where extension.extname = 'pgmq'
                 loop
                     execute v_statement;
                 end loop;
                 drop extension if exists pgmq;
             end
             $$",
        )
        .await;
    }

    /// The schemas of pgflow and PGMQ that exist.
    pub(crate) async fn schemas(&self) -> Vec<String> {
        sqlx::query_scalar(
            "select nspname::text from pg_namespace where nspname in ('pgflow', 'pgmq') order by 1",
        )
        .fetch_all(&self.pool)
        .await
        .unwrap()
    }

    /// Returns the times at which everything was applied, as one text.
    pub(crate) async fn applied_at(&self) -> String {
        self.text(
            "select string_agg(name || ' ' || applied_at, ', ' order by name) from (
                 select name, applied_at from pgflow.schema_migrations
                 union all select name, applied_at from pgflow.schema_functions
             ) applied",
        )
        .await
    }

    /// Returns the records, without times.
    pub(crate) async fn digests(&self) -> String {
        self.text(
            "select string_agg(entry, ', ' order by entry) from (
                 select format('%s %s %s', version, name, digest) entry from pgflow.schema_migrations
                 union all select format('%s %s %s', name, signature, digest) from pgflow.schema_functions
             ) recorded",
        )
        .await
    }

    pub(crate) async fn wait_for_a_waiting_migrator(&self) {
        self.wait_until(
            "select count(*) from pg_stat_activity where datname = current_database()
                 and application_name = 'pgflow migrate' and wait_event_type = 'Lock'",
            1,
        )
        .await;
    }

    pub(crate) async fn wait_until_no_migrator_is_left(&self) {
        self.wait_until(
            "select count(*) from pg_stat_activity where datname = current_database()
                 and application_name = 'pgflow migrate'",
            0,
        )
        .await;
    }

    async fn wait_until(&self, query: &'static str, expected: i64) {
        let what = format!("{expected} from: {query}");
        eventually(Duration::from_secs(20), what, async || {
            (self.count(query).await == expected).then_some(())
        })
        .await;
    }

    /// A pool of another role; creates the role as an ordinary one.
    pub(crate) async fn pool_of_new_role(&self, role: &str) -> PgPool {
        self.run(format!("create role \"{role}\" login")).await;
        PgPoolOptions::new()
            .max_connections(2)
            .connect_with(self.options.clone().username(role))
            .await
            .unwrap()
    }

    /// `pg_dump --schema-only`, without what differs from call to call.
    pub(crate) async fn dump(&self) -> String {
        let output = self
            .program("pg_dump")
            .await
            .arg("--schema-only")
            .output()
            .expect("pg_dump can be run");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout)
            .unwrap()
            .lines()
            // Tokens that newer versions of pg_dump draw at random.
            .filter(|line| !line.starts_with("\\restrict") && !line.starts_with("\\unrestrict"))
            .collect::<Vec<_>>()
            .join("\n")
    }

    /// Applies a script as a person would.
    pub(crate) async fn psql(&self, script: &str) {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(script.as_bytes()).unwrap();
        let output = self
            .program("psql")
            .await
            .args([
                "--no-psqlrc",
                "--quiet",
                "--set",
                "ON_ERROR_STOP=1",
                "--file",
            ])
            .arg(file.path())
            .output()
            .expect("psql can be run");
        assert!(
            output.status.success() && output.stderr.is_empty(),
            "{output:?}"
        );
    }

    /// A client program of the server's own version, told to connect here.
    async fn program(&self, name: &str) -> Command {
        let bin = self
            .text("select setting from pg_catalog.pg_config() where name = 'BINDIR'")
            .await;
        let host = match self.options.get_socket() {
            Some(socket) => socket.clone(),
            None => PathBuf::from(self.options.get_host()),
        };
        let mut command = Command::new(PathBuf::from(bin).join(name));
        command
            .env("PGHOST", host)
            .env("PGPORT", self.options.get_port().to_string())
            .env("PGUSER", self.options.get_username())
            .env("PGDATABASE", &self.name);
        command
    }
}
