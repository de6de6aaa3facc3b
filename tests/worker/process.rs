//! Workers in a process of their own: this test program again, running `worker_process`.

use std::{
    env, os::unix::process::ExitStatusExt, process::ExitStatus, process::Stdio, time::Duration,
};

use pgflow::client::Client;
use pgflow::prelude::*;
use sqlx::PgPool;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

use super::{DEADLINE, in_time, until_workers};
use crate::support::{TestDb, invariants::assert_invariants};

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

/// A step that is told to stop, says so, and does not.
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
    process.terminate().await;
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
