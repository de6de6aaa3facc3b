//! A process of its own that owns a development database: this test program again, running
//! `owner_process`.

use std::env;
use std::io::{BufRead, BufReader, Lines};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use pgflow_runtime::dev::DevDatabase;
use sqlx::postgres::PgConnectOptions;
use tokio::signal::unix::{SignalKind, signal};

use crate::place::scratch;

/// The behaviour of the process once its database is ready; all except `Hold` end the process. All
/// except `Report` and `Migrate` leave another child of the process running.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Then {
    Hold,
    Return,
    Exit,
    Panic,
    Report,
    Migrate,
}

const THEN: &str = "DEV_DATABASE_TEST_THEN";
const DATA_DIR: &str = "DEV_DATABASE_TEST_DATA_DIR";
const READY: &str = "ready: ";
const FAILED: &str = "failed: ";
pub(crate) const INTERRUPTED: &str = "interrupted: ";

#[tokio::test]
#[ignore = "the process that other tests start"]
async fn owner_process() {
    let Ok(then) = env::var(THEN) else {
        return;
    };
    // From here on an interrupt does not end this process.
    let mut interrupts = signal(SignalKind::interrupt()).unwrap();
    let mut builder = DevDatabase::builder();
    if let Some(path) = env::var_os(DATA_DIR) {
        builder = builder.data_dir(path);
    }
    let database = match builder.start().await {
        Ok(database) => database,
        Err(error) => {
            println!("\n{FAILED}{}", error.to_string().replace('\n', " "));
            return;
        }
    };
    if then == "Migrate" {
        database.migrated_pool().await.unwrap();
    }
    let sibling = match then.as_str() {
        "Report" | "Migrate" => 0,
        _ => sibling(),
    };
    let kind = if database.is_private() {
        "private"
    } else {
        "given"
    };
    println!("\n{READY}{sibling} {kind} {}", database.url());
    match then.as_str() {
        "Hold" => loop {
            interrupts.recv().await;
            let pool = database.pool().await.unwrap();
            let answer: i32 = sqlx::query_scalar("select 42")
                .fetch_one(&pool)
                .await
                .unwrap();
            println!("\n{INTERRUPTED}{answer}");
        },
        "Exit" => std::process::exit(0),
        "Panic" => panic!("as the test asks"),
        _ => {}
    }
}

/// A process that lives on after its parent, and must not keep the server alive.
fn sibling() -> u32 {
    let mut sleep = Command::new("sleep");
    // It must not hold what the test runner reads, either.
    sleep
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    sleep.arg("600").spawn().unwrap().id()
}

/// The process, seen from a test. Killed when dropped.
#[derive(Debug)]
pub(crate) struct Owner {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

#[derive(Debug)]
pub(crate) struct Ready {
    pub(crate) url: String,
    pub(crate) is_private: bool,
    /// Process id of another child of the owner; 0 means none.
    sibling: u32,
}

/// The command that becomes an owner; tests adjust its environment and user.
pub(crate) fn command(then: Then) -> Command {
    command_of(&env::current_exe().unwrap(), then)
}

pub(crate) fn command_of(program: &Path, then: Then) -> Command {
    let mut command = Command::new(program);
    command
        .args([
            "--exact",
            "owner::owner_process",
            "--ignored",
            "--nocapture",
        ])
        .env(THEN, format!("{then:?}"))
        .env_remove("DATABASE_URL")
        .env("TMPDIR", scratch())
        .stdout(Stdio::piped())
        .process_group(0);
    command
}

pub(crate) fn keeping(mut command: Command, data_dir: &Path) -> Command {
    command.env(DATA_DIR, data_dir);
    command
}

impl Owner {
    pub(crate) fn spawn(mut command: Command) -> Self {
        let mut process = command.spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        Self { process, lines }
    }

    pub(crate) fn ready(&mut self) -> Result<Ready, String> {
        let line = self.line([READY, FAILED]);
        if let Some(error) = line.strip_prefix(FAILED) {
            return Err(error.to_owned());
        }
        let words: Vec<&str> = line[READY.len()..].split(' ').collect();
        let [sibling, kind, url] = words[..] else {
            panic!("unexpected line of the owner: {line}");
        };
        Ok(Ready {
            url: url.to_owned(),
            is_private: kind == "private",
            sibling: sibling.parse().unwrap(),
        })
    }

    /// The next line of the process that begins with one of `prefixes`.
    pub(crate) fn line<const N: usize>(&mut self, prefixes: [&str; N]) -> String {
        self.lines
            .by_ref()
            .map(Result::unwrap)
            .find(|line| prefixes.iter().any(|prefix| line.starts_with(prefix)))
            .unwrap_or_else(|| panic!("the owner ended without saying any of {prefixes:?}"))
    }

    /// Does the same as ctrl-c in a terminal.
    pub(crate) fn interrupt_group(&self) {
        assert!(sh("kill -s INT -- \"-$1\"", &self.process.id().to_string()));
    }

    /// SIGKILL, which no process can prepare for.
    pub(crate) fn kill(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    pub(crate) fn wait(mut self) -> bool {
        self.process.wait().unwrap().success()
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        // Fails when the process has ended, which is as good.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Ready {
    /// The directory with socket and, when the data is temporary, everything else.
    pub(crate) fn directory(&self) -> PathBuf {
        directory(&self.url)
    }

    /// Asserts that the owner's other child still lives, and ends it.
    pub(crate) fn end_sibling(&mut self) {
        let sibling = std::mem::take(&mut self.sibling).to_string();
        assert!(
            sh("kill -s KILL \"$1\"", &sibling),
            "the sibling ended early"
        );
    }
}

impl Drop for Ready {
    fn drop(&mut self) {
        if self.sibling != 0 {
            sh("kill -s KILL \"$1\" 2>/dev/null", &self.sibling.to_string());
        }
    }
}

pub(crate) fn directory(url: &str) -> PathBuf {
    let options: PgConnectOptions = url.parse().unwrap();
    options.get_socket().unwrap().clone()
}

/// The process id of the server on the data in `home`.
pub(crate) fn server_pid(home: &Path) -> String {
    let path = home.join("data/postmaster.pid");
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().next().unwrap().to_owned()
}

pub(crate) fn is_alive(pid: &str) -> bool {
    sh("kill -0 \"$1\" 2>/dev/null", pid)
}

fn sh(script: &str, argument: &str) -> bool {
    let status = Command::new("/bin/sh")
        .args(["-c", script, "sh", argument])
        .status();
    status.unwrap().success()
}

/// Waits until `holds`; fails with `what` when that takes too long.
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !holds() {
        assert!(
            Instant::now() < deadline,
            "did not come within 30 s: {what}"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
}

pub(crate) fn assert_all_gone(directory: &Path, pid: &str) {
    eventually("the server is gone", || !is_alive(pid));
    eventually("its directory is gone", || !directory.exists());
}
