//! Workers in a process of their own: this test program again, running `worker_process`.

use std::{
    env, os::unix::process::ExitStatusExt, process::ExitStatus, process::Stdio, time::Duration,
};

use pgflow::client::Client;
use pgflow::prelude::*;
use sqlx::PgPool;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use uuid::Uuid;

use super::{DEADLINE, in_time, run_sql, start, until_workers};
use crate::support::{TestDb, eventually, invariants::assert_invariants};

const URL: &str = "WORKER_TEST_URL";
const WORK: &str = "WORKER_TEST_WORK";
const NEVER: Duration = Duration::from_hours(1);

/// Three steps in a row, the middle one in another process.
mod relay {
    use super::*;

    pub(super) struct Relay;

    #[flow(input = u32, with_step_queues)]
    impl Relay {
        #[step]
        async fn first(input: u32) -> StepResult<u32> {
            Ok(input + 1)
        }

        #[step(depends_on = [first])]
        async fn second(first: u32) -> StepResult<(u32, u32)> {
            Ok((first + 1, std::process::id()))
        }

        #[step(depends_on = [second])]
        async fn third(second: (u32, u32)) -> StepResult<(u32, u32)> {
            Ok((second.0 + 1, second.1))
        }
    }
}

/// A step that is asked to stop, says so, and does not.
mod deaf {
    use super::*;

    pub(super) struct Deaf;

    #[flow(input = ())]
    impl Deaf {
        #[step]
        async fn wait(ctx: &StepContext) -> StepResult<()> {
            println!("\nruns");
            ctx.cancelled().await;
            println!("\ntold to stop");
            std::future::pending().await
        }
    }
}

/// A step that blocks a thread of its own for long, or the one that everything else runs on.
mod blocking {
    use super::*;

    pub(super) struct Blocking;

    #[flow(input = bool)]
    impl Blocking {
        #[step]
        async fn block(input: bool) -> StepResult<()> {
            let block = || {
                println!("\nruns");
                std::thread::sleep(NEVER);
            };
            if input {
                tokio::task::spawn_blocking(block).await?;
            } else {
                block();
            }
            Ok(())
        }
    }
}

/// A step that goes on and on, and says so; its second attempt ends at once.
mod beating {
    use super::*;

    pub(super) struct Beating;

    struct Dropped;

    impl Drop for Dropped {
        fn drop(&mut self) {
            println!("\ndropped");
        }
    }

    #[flow(input = (), timeout = "1h")]
    impl Beating {
        #[step]
        async fn beat(ctx: &StepContext) -> StepResult<i32> {
            if ctx.attempt() == 1 {
                let _dropped = Dropped;
                while !ctx.cancellation_token().is_cancelled() {
                    println!("\nbeats");
                    tokio::time::sleep(Duration::from_millis(200)).await;
                }
                println!("\ntold to stop");
                // A late result.
                return Ok(0);
            }
            Ok(ctx.attempt())
        }
    }
}

use beating::Beating;
use blocking::Blocking;
use deaf::Deaf;
use relay::{Relay, Step};

#[tokio::test]
#[ignore = "the process that other tests start"]
async fn worker_process() {
    let (Ok(url), Ok(work)) = (env::var(URL), env::var(WORK)) else {
        return;
    };
    let pool = PgPool::connect(&url).await.unwrap();
    let ended = if work == "relay" {
        let worker = StepWorker::<Relay>::new(Step::Second).poll_interval(NEVER);
        worker.run(&pool).await
    } else if work == "beating" {
        FlowWorker::<Beating>::new().run(&pool).await
    } else if work == "leased" {
        let worker = FlowWorker::<Beating>::new().abandon_after(Duration::from_secs(6));
        worker.run(&pool).await
    } else if work == "blocking" {
        let worker = FlowWorker::<Blocking>::new().shutdown_timeout(Duration::ZERO);
        worker.run(&pool).await
    } else {
        let worker = FlowWorker::<Deaf>::new().shutdown_timeout(NEVER);
        worker.run(&pool).await
    };
    match ended {
        Ok(()) => println!("\nended"),
        Err(error) => println!("\nfailed: {error}"),
    }
    if work == "relay" {
        // As a program does that cleans up.
        std::thread::sleep(NEVER);
    }
}

/// The process, seen from a test. Killed when dropped.
struct Process {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Process {
    fn start(database: &TestDb, work: &str) -> Self {
        let mut child = Command::new(env::current_exe().unwrap())
            .args([
                "--exact",
                "worker::process::worker_process",
                "--ignored",
                "--nocapture",
            ])
            .env(URL, &database.url)
            .env(WORK, work)
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    fn id(&self) -> u32 {
        self.child.id().expect("it runs")
    }

    /// Waits until it says this.
    async fn says(&mut self, text: &str) {
        let said = async {
            while let Some(line) = self.lines.next_line().await.unwrap() {
                if line == text {
                    return;
                }
                assert!(!line.starts_with("failed"), "{line}");
            }
            panic!("it ended without saying {text:?}");
        };
        in_time(said).await;
    }

    /// Reads what was said until now, then the first of these that is said.
    async fn says_first(&mut self, texts: &[&str]) -> String {
        let said = async {
            while let Some(line) = self.lines.next_line().await.unwrap() {
                if texts.contains(&&*line) {
                    return line;
                }
            }
            panic!("it ended without saying one of {texts:?}");
        };
        in_time(said).await
    }

    async fn says_nothing_more(&mut self) {
        let silent = Duration::from_millis(500);
        while tokio::time::timeout(silent, self.lines.next_line())
            .await
            .is_ok()
        {}
    }

    async fn terminate(&self) {
        self.signal("TERM").await;
    }

    async fn signal(&self, name: &str) {
        let pid = self.id().to_string();
        let kill = Command::new("kill").args(["-s", name, &pid]).status();
        assert!(kill.await.unwrap().success());
    }

    async fn ends(&mut self) -> ExitStatus {
        in_time(self.child.wait()).await.unwrap()
    }
}

#[tokio::test]
async fn processes_wake_each_other_and_end_by_a_signal_when_their_workers_have_ended() {
    let database = TestDb::new().await;
    let workers = Workers::new(&database.pool)
        .add(StepWorker::<Relay>::new(Step::First).poll_interval(NEVER))
        .add(StepWorker::<Relay>::new(Step::Third).poll_interval(NEVER))
        .start()
        .await
        .unwrap();
    let mut process = Process::start(&database, "relay");
    until_workers(&database.pool, 3).await;
    let client = Client::new(database.pool.clone());
    for input in 0..5 {
        let run = client.start::<Relay>(&input).await.unwrap();
        let output = run.wait().timeout(DEADLINE).await.unwrap();
        assert_eq!(output.third, (input + 3, process.id()));
    }
    process.terminate().await;
    process.says("ended").await;
    // No worker runs any more: the signal does what it does by default.
    process.terminate().await;
    assert_eq!(process.ends().await.signal(), Some(15));
    workers.stop().await.unwrap();
    until_workers(&database.pool, 0).await;
    assert_invariants(&database.pool).await;
}

#[tokio::test]
async fn a_second_signal_ends_the_process_at_once() {
    let database = TestDb::new().await;
    let mut process = Process::start(&database, "deaf");
    until_workers(&database.pool, 1).await;
    let client = Client::new(database.pool.clone());
    client.start::<Deaf>(&()).await.unwrap();
    process.says("runs").await;
    process.terminate().await;
    process.says("told to stop").await;
    process.terminate().await;
    assert_eq!(process.ends().await.code(), Some(143));
    assert_invariants(&database.pool).await;
}

async fn ends_while_a_handler_blocks(apart: bool) {
    let database = TestDb::new().await;
    let mut process = Process::start(&database, "blocking");
    until_workers(&database.pool, 1).await;
    let client = Client::new(database.pool.clone());
    client.start::<Blocking>(&apart).await.unwrap();
    process.says("runs").await;
    process.signal("INT").await;
    if apart {
        // The worker has ended; its runtime waits for the thread.
        until_workers(&database.pool, 0).await;
        process.signal("INT").await;
        assert_eq!(process.ends().await.signal(), Some(2));
        return;
    }
    // Two signals that follow each other closely may count as one.
    let ended = async {
        loop {
            process.signal("INT").await;
            tokio::select! {
                status = process.child.wait() => return status.unwrap(),
                () = tokio::time::sleep(Duration::from_millis(50)) => {}
            }
        }
    };
    assert_eq!(in_time(ended).await.code(), Some(130));
}

#[tokio::test]
async fn a_second_signal_ends_a_process_whose_handler_blocks_a_thread_of_its_own() {
    ends_while_a_handler_blocks(true).await;
}

#[tokio::test]
async fn a_second_signal_ends_a_process_whose_handler_blocks_its_only_thread() {
    ends_while_a_handler_blocks(false).await;
}

/// A process that stands still while its task is given to another one, which completes it.
struct Overtaken {
    database: TestDb,
    process: Process,
    run_id: Uuid,
}

impl Overtaken {
    async fn new(work: &str) -> Self {
        let database = TestDb::new().await;
        let mut process = Process::start(&database, work);
        until_workers(&database.pool, 1).await;
        let client = Client::new(database.pool.clone());
        let run = client.start::<Beating>(&()).await.unwrap();
        process.says("beats").await;
        process.signal("STOP").await;
        process.says_nothing_more().await;
        // Silent for longer than it may be.
        eventually(DEADLINE, "its heartbeat is old", async || {
            sqlx::query_scalar::<_, bool>(
                "select true from pgflow.workers where last_heartbeat_at < clock_timestamp() - interval '7 s'",
            )
            .fetch_optional(&database.pool)
            .await
            .unwrap()
        })
        .await;
        run_sql(
            &database.pool,
            "update pgflow.step_tasks set queued_at = queued_at - interval '2 h', started_at = started_at - interval '2 h'; \
             update pgflow.claims set look_at = look_at - interval '2 h'; \
             select pgflow.requeue_stalled_tasks()",
        )
        .await;
        let other = start::<Beating>(&database.pool, ()).await;
        let output = run.wait().timeout(DEADLINE).await.unwrap();
        assert_eq!(output.beat, 2);
        other.stop().await.unwrap();
        Self {
            run_id: run.run_id(),
            database,
            process,
        }
    }

    async fn ends_without_a_trace(mut self) {
        self.process.terminate().await;
        self.process.says("ended").await;
        let output: i32 = sqlx::query_scalar(
            "select (output ->> 'beat')::int from pgflow.runs where run_id = $1",
        )
        .bind(self.run_id)
        .fetch_one(&self.database.pool)
        .await
        .unwrap();
        assert_eq!(output, 2, "the late result is ignored");
        assert_invariants(&self.database.pool).await;
    }
}

#[tokio::test]
async fn a_process_that_stood_still_tells_the_handler_that_was_overtaken_with_its_first_heartbeat()
{
    let mut case = Overtaken::new("beating").await;
    case.process.signal("CONT").await;
    // Its heartbeat was due: it does not wait for another one.
    let told = case.process.says("told to stop");
    let told = tokio::time::timeout(Duration::from_secs(4), told).await;
    assert!(told.is_ok(), "a heartbeat comes every 5 s");
    case.ends_without_a_trace().await;
}

#[tokio::test]
async fn a_process_that_stood_still_for_longer_than_its_lease_runs_no_step_of_the_attempt_any_more()
{
    let mut case = Overtaken::new("leased").await;
    case.process.signal("CONT").await;
    let first = case
        .process
        .says_first(&["beats", "told to stop", "dropped"]);
    assert_eq!(first.await, "dropped");
    case.ends_without_a_trace().await;
}
