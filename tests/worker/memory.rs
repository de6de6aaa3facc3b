//! The memory of a worker with large values: this test program again, running `memory_process`.

#![cfg(target_os = "linux")]

use std::{env, fs, process::Stdio};

use pgflow::client::Client;
use pgflow::prelude::*;
use pgflow::{OneQueue, RunHandle};
use sqlx::PgPool;
use tokio::process::{Child, Command};

use super::{DEADLINE, until_workers};
use crate::support::{TestDb, eventually, invariants::assert_invariants};

const URL: &str = "MEMORY_TEST_URL";
const FLOW: &str = "MEMORY_TEST_FLOW";
const MIB: usize = 1 << 20;
const CONCURRENCY: usize = 10;

/// Many large outputs.
mod outputs {
    use super::*;

    pub(super) struct Outputs;

    #[flow(input = usize)]
    impl Outputs {
        #[step]
        async fn big(input: usize) -> StepResult<String> {
            Ok("x".repeat(input))
        }
    }
}

/// A large input of each run.
mod inputs {
    use super::*;

    pub(super) struct Inputs;

    #[flow(input = String)]
    impl Inputs {
        #[step]
        async fn size(input: &str) -> StepResult<usize> {
            Ok(input.len())
        }
    }
}

/// A large input that many tasks take, of a map and of root steps.
mod one_input {
    use super::*;
    use serde::{Deserialize, Serialize};

    #[derive(Serialize, Deserialize)]
    pub(super) struct Shared {
        pub(super) text: String,
        pub(super) count: usize,
    }

    pub(super) struct OneInput;

    #[flow(input = Shared)]
    impl OneInput {
        #[step]
        async fn list(input: &Shared) -> StepResult<Vec<usize>> {
            Ok((0..input.count).collect())
        }

        #[step]
        async fn size(input: Shared) -> StepResult<usize> {
            Ok(input.text.len())
        }

        #[step]
        async fn constant() -> StepResult<usize> {
            Ok(1)
        }

        #[step(map = list)]
        async fn each(item: usize, input: &Shared) -> StepResult<usize> {
            Ok(item + input.text.len())
        }

        #[step(depends_on = [each, size, constant])]
        async fn sum(
            each: &[usize],
            size: usize,
            constant: usize,
            input: &Shared,
        ) -> StepResult<usize> {
            assert_eq!(size, input.text.len());
            Ok(each.iter().sum::<usize>() + constant)
        }
    }
}

use inputs::Inputs;
use one_input::{OneInput, Shared};
use outputs::Outputs;

#[tokio::test]
#[ignore = "the process that other tests start"]
async fn memory_process() {
    let (Ok(url), Ok(flow)) = (env::var(URL), env::var(FLOW)) else {
        return;
    };
    let pool = PgPool::connect(&url).await.unwrap();
    match flow.as_str() {
        "outputs" => serve::<Outputs>(&pool).await,
        "inputs" => serve::<Inputs>(&pool).await,
        _ => serve::<OneInput>(&pool).await,
    }
}

async fn serve<F: Flow<State = (), Queues = OneQueue>>(pool: &PgPool) {
    let worker = FlowWorker::<F>::new().concurrency(CONCURRENCY);
    worker.run(pool).await.unwrap();
}

/// The process, killed when dropped.
struct Process {
    child: Child,
    own: usize,
}

impl Process {
    async fn start(database: &TestDb, flow: &str) -> Self {
        let child = Command::new(env::current_exe().unwrap())
            .args(["--exact", "worker::memory::memory_process", "--ignored"])
            .env(URL, &database.url)
            .env(FLOW, flow)
            .stdout(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        until_workers(&database.pool, 1).await;
        let mut process = Self { child, own: 0 };
        process.own = process.peak();
        process
    }

    /// The most memory that it had so far, in MiB, over what it had at the start.
    fn peak(&self) -> usize {
        let status = format!("/proc/{}/status", self.child.id().expect("it runs"));
        let status = fs::read_to_string(status).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM"));
        let kib: usize = line
            .unwrap()
            .split_whitespace()
            .nth(1)
            .unwrap()
            .parse()
            .unwrap();
        kib / 1024 - self.own
    }
}

async fn until_ended<F: Flow>(runs: &[RunHandle<F>]) {
    for run in runs {
        run.wait().timeout(DEADLINE * 15).await.unwrap();
    }
}

#[tokio::test]
async fn outputs_that_wait_to_be_recorded_are_bounded_by_their_bytes() {
    let database = TestDb::new().await;
    let process = Process::start(&database, "outputs").await;
    let client = Client::new(database.pool.clone());
    client.start_many::<Outputs>(&[5 * MIB; 60]).await.unwrap();
    eventually(DEADLINE * 15, "all outputs are recorded", async || {
        let open: i64 =
            sqlx::query_scalar("select count(*) from pgflow.runs where status <> 'completed'")
                .fetch_one(&database.pool)
                .await
                .unwrap();
        (process.peak() > 200 || open == 0).then_some(())
    })
    .await;
    let peak = process.peak();
    println!("{peak} MiB");
    assert!(peak <= 200, "{peak} MiB");
    assert_invariants(&database.pool).await;
}

#[tokio::test]
async fn inputs_of_tasks_that_wait_for_a_slot_are_bounded_by_their_bytes() {
    let database = TestDb::new().await;
    let process = Process::start(&database, "inputs").await;
    let client = Client::new(database.pool.clone());
    // Small ones first: the worker has learned to claim many ahead.
    let small = vec![String::new(); 2000];
    let mut runs = client.start_many::<Inputs>(&small).await.unwrap();
    let large = "x".repeat(2 * MIB);
    for _ in 0..8 {
        let some = vec![large.clone(); 25];
        runs.extend(client.start_many::<Inputs>(&some).await.unwrap());
    }
    until_ended(&runs).await;
    let peak = process.peak();
    println!("{peak} MiB");
    assert!(peak <= 120, "{peak} MiB");
    assert_invariants(&database.pool).await;
}

#[tokio::test]
async fn an_input_that_many_tasks_of_a_run_take_is_held_once() {
    let database = TestDb::new().await;
    let process = Process::start(&database, "one_input").await;
    let client = Client::new(database.pool.clone());
    let input = Shared {
        text: "x".repeat(5 * MIB),
        count: 200,
    };
    let run = client.start::<OneInput>(&input).await.unwrap();
    let output = run.wait().timeout(DEADLINE * 15).await.unwrap();
    let expected = 200 * 5 * MIB + 199 * 200 / 2 + 1;
    assert_eq!(output.sum, expected);
    let peak = process.peak();
    println!("{peak} MiB");
    assert!(peak <= 100, "{peak} MiB");
    assert_invariants(&database.pool).await;
}
