use std::{
    io::Write as _,
    process::{Command, Stdio},
    sync::{
        LazyLock,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use pgflow_runtime::{dev::DevDatabase, migrate};
#[cfg(unix)]
use rexpect::{process::WaitStatus, session::PtySession};
use serde_json::Value;
use sqlx::{AssertSqlSafe, Connection, Decode, PgConnection, PgPool, Postgres, Type};
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

    /// A run of this id of flow `twins`, whose first step failed it while the second one's three
    /// tasks waited and ran, long ago: the run took 5 seconds, and the second step started 1 second
    /// after it.
    pub(crate) fn with_a_run_that_failed(id: &str) -> Self {
        let database = Self::migrated();
        database.execute(&format!(
            "select pgflow.create_flow('twins');
             select pgflow.add_step('twins', 'one');
             select pgflow.add_step('twins', 'other', step_type => 'map');
             select pgflow.add_step('twins', 'last', array['other']);
             select pgflow.start_flow('twins', '[1, 2, 3]', run_id => '{id}');
             select pgflow.track_worker_function('twins');
             select pgflow.register_worker('{WORKER_ID}', 'twins', 'twins', null, 'twins', '{{}}');"
        ));
        database.execute(&format!(
            "select pgflow.claim_tasks('{WORKER_ID}', 3);
             select pgflow.fail_task('{id}', 'one', 0, 'out of numbers', retryable => false);
             update pgflow.runs set started_at = '2026-01-31 10:00:00Z', failed_at = '2026-01-31 10:00:05Z';
             update pgflow.step_states set created_at = '2026-01-31 10:00:00Z',
                 started_at = case when step_slug <> 'last' then timestamptz '2026-01-31 10:00:01Z' end,
                 failed_at = case when step_slug = 'one' then timestamptz '2026-01-31 10:00:05Z' end"
        ));
        database
    }

    /// Flow `sums` with one queue, and flow `steps` with a queue for each of its steps `b` and `a`.
    pub(crate) fn with_two_flows() -> Self {
        let database = Self::with_flow();
        database.execute(
            r#"select pgflow.ensure_flow_compiled('steps', jsonb_build_object('steps', (
                   select jsonb_agg(jsonb_build_object('slug', s, 'stepType', 'single', 'dependencies', '[]'::jsonb, 'whenUnmet', 'skip',
                       'whenExhausted', 'fail', 'requiredInputPattern', '{"defined": false}'::jsonb, 'forbiddenInputPattern', '{"defined": false}'::jsonb))
                   from unnest(array['b', 'a']) s)), 'step')"#,
        );
        database
    }

    /// Registers a worker of this function, which stays alive; the last digits of its id are these.
    /// With a step, a worker of the step's queue.
    pub(crate) fn register(
        &self,
        id: u32,
        function: &str,
        flow: &str,
        step: Option<&str>,
    ) -> String {
        let id = format!("00000000-0000-0000-0000-{id:012}");
        let queue = step.map_or_else(|| flow.to_owned(), |step| format!("{flow}__{step}"));
        let step = step.map_or_else(|| "null".to_owned(), |step| format!("'{step}'"));
        self.execute(&format!(
            "select pgflow.track_worker_function('{function}');
             select pgflow.register_worker('{id}', '{function}', '{flow}', {step}, '{queue}', '{{}}');
             update pgflow.workers set last_heartbeat_at = now() + interval '1 hour' where worker_id = '{id}'"
        ));
        id
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

    pub(crate) fn number(&self, query: &str) -> i64 {
        self.value(query)
    }

    pub(crate) fn text(&self, query: &str) -> String {
        self.value(query)
    }

    fn value<T>(&self, query: &str) -> T
    where
        T: Type<Postgres> + for<'r> Decode<'r, Postgres> + Send + Unpin,
    {
        SERVER.runtime.block_on(async {
            let mut connection = PgConnection::connect(&self.url).await.unwrap();
            let (value,): (T,) = sqlx::query_as(AssertSqlSafe(query.to_owned()))
                .fetch_one(&mut connection)
                .await
                .unwrap();
            connection.close().await.unwrap();
            value
        })
    }

    pub(crate) fn runs(&self) -> i64 {
        self.number("select count(*) from pgflow.runs")
    }

    /// With runs of flow `sums` that have completed, each so many days ago; they have one task
    /// each.
    pub(crate) fn with_runs_that_ended(days_ago: &[u32]) -> Self {
        let database = Self::with_flow();
        database.execute(WORKER);
        for days in days_ago {
            database.execute(&format!(
                "do $$
                 declare
                     id uuid;
                 begin
                     select run_id into id from pgflow.start_flow('sums', '{{}}');
                     perform pgflow.claim_tasks('{WORKER_ID}', 1);
                     perform pgflow.complete_task(id, 'numbers', 0, '[]');
                     update pgflow.runs set started_at = started_at - interval '{days} days', completed_at = completed_at - interval '{days} days'
                     where run_id = id;
                 end $$"
            ));
        }
        assert_eq!(
            database.number("select count(*) from pgflow.runs where status = 'completed'"),
            i64::try_from(days_ago.len()).unwrap()
        );
        database
    }

    /// Waits until the command waits for a lock of this database.
    pub(crate) fn until_blocked(&self) {
        eventually("the command waits for a lock", || {
            self.number(
                "select count(*) from pg_stat_activity
                 where datname = current_database() and application_name = 'pgflow' and wait_event_type = 'Lock'",
            ) == 1
        });
    }

    /// A transaction that has done this, and stays open.
    #[cfg(unix)]
    pub(crate) fn holding(&self, sql: &str) -> Held {
        SERVER.runtime.block_on(async {
            let mut connection = PgConnection::connect(&self.url).await.unwrap();
            sqlx::raw_sql(AssertSqlSafe(format!("begin; {sql}")))
                .execute(&mut connection)
                .await
                .unwrap();
            Held(connection)
        })
    }

    /// Calls the command with this database.
    pub(crate) fn pgflow(&self, arguments: &[&str]) -> Ran {
        self.pgflow_reading(arguments, "")
    }

    pub(crate) fn pgflow_reading(&self, arguments: &[&str], stdin: &str) -> Ran {
        run(command(arguments).env("DATABASE_URL", &self.url), stdin)
    }
}

pub(crate) const WORKER_ID: &str = "00000000-0000-0000-0000-0000000000ff";

/// Registers a worker of flow `sums`.
pub(crate) const WORKER: &str = "select pgflow.track_worker_function('sums');
    select pgflow.register_worker('00000000-0000-0000-0000-0000000000ff', 'sums', 'sums', null, 'sums', '{}')";

/// A transaction that holds locks.
#[cfg(unix)]
pub(crate) struct Held(PgConnection);

#[cfg(unix)]
impl Held {
    /// Undoes it.
    pub(crate) fn let_go(self) {
        SERVER.runtime.block_on(self.0.close()).unwrap();
    }
}

/// The command, called at a terminal.
#[cfg(unix)]
pub(crate) struct Terminal(PtySession);

#[cfg(unix)]
impl Terminal {
    pub(crate) fn open(database: &Database, arguments: &[&str]) -> Self {
        Self::open_with(database, arguments, &[])
    }

    /// With environment variables too.
    pub(crate) fn open_with(
        database: &Database,
        arguments: &[&str],
        variables: &[(&str, &str)],
    ) -> Self {
        let mut command = command(arguments);
        command
            .env("DATABASE_URL", &database.url)
            .env_remove("NO_COLOR")
            .envs(variables.iter().copied());
        Self(rexpect::session::spawn_command(command, Some(20_000)).unwrap())
    }

    /// Reads on until this has been written; returns what came before it.
    pub(crate) fn sees(&mut self, text: &str) -> String {
        self.0.exp_string(text).unwrap()
    }

    /// Types ctrl-c.
    pub(crate) fn interrupts(&mut self) {
        self.0.send_control('c').unwrap();
    }

    pub(crate) fn answers(&mut self, line: &str) {
        self.0.send_line(line).unwrap();
    }

    pub(crate) fn exit_code(mut self) -> i32 {
        self.0.exp_eof().unwrap();
        match self.0.process().wait().unwrap() {
            WaitStatus::Exited(_, code) => code,
            other => panic!("{other:?}"),
        }
    }
}

/// Waits until this holds.
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !holds() {
        assert!(Instant::now() < deadline, "did not come: {what}");
        std::thread::sleep(Duration::from_millis(10));
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

/// The result of a call.
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
