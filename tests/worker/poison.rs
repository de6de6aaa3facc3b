//! An input that brings its process down: it is found out, and its neighbours complete. The process
//! is this test program again, running `poisoned_process`.

use std::{env, process::Stdio, time::Duration};

use pgflow::client::{Client, RunError};
use pgflow::prelude::*;
use sqlx::PgPool;
use tokio::process::{Child, Command};
use uuid::Uuid;

use super::DEADLINE;
use crate::support::{TestDb, invariants::assert_invariants};

const URL: &str = "POISON_TEST_URL";
const FLOW: &str = "POISON_TEST_FLOW";
const POISON: u32 = 3;

/// Two flows, which differ in how often they try.
macro_rules! poisoned {
    ($module:ident, $name:ident, $($option:tt)*) => {
        mod $module {
            use super::*;

            pub(super) struct $name;

            #[flow(input = u32, $($option)*)]
            impl $name {
                #[step]
                async fn work(input: u32, ctx: &StepContext) -> StepResult<u32> {
                    note_start(ctx, input).await?;
                    // All of them run by then.
                    tokio::time::sleep(Duration::from_millis(300)).await;
                    if input == POISON {
                        std::process::abort();
                    }
                    Ok(input)
                }
            }
        }
    };
}
poisoned!(often, Often,);
poisoned!(once, Once, max_attempts = 1);

async fn note_start(ctx: &StepContext, input: u32) -> StepResult<()> {
    sqlx::query("insert into starts (input, attempt, max_attempts) values ($1, $2, $3)")
        .bind(i32::try_from(input)?)
        .bind(ctx.attempt())
        .bind(ctx.max_attempts())
        .execute(ctx.pool())
        .await?;
    Ok(())
}

/// Not a test: what the process runs.
#[tokio::test]
#[ignore = "the process that other tests start"]
async fn poisoned_process() {
    let Ok(url) = env::var(URL) else {
        return;
    };
    let pool = PgPool::connect(&url).await.unwrap();
    let interval = Duration::from_millis(20);
    if env::var(FLOW).unwrap() == "once" {
        let worker = FlowWorker::<once::Once>::new().poll_interval(interval);
        worker.run(&pool).await.unwrap();
    } else {
        let worker = FlowWorker::<often::Often>::new().poll_interval(interval);
        worker.run(&pool).await.unwrap();
    }
}

fn start_process(db: &TestDb, flow: &str) -> Child {
    Command::new(env::current_exe().unwrap())
        .args(["--exact", "worker::poison::poisoned_process", "--ignored"])
        .env(URL, &db.url)
        .env(FLOW, flow)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap()
}

/// Starts the process again, as often as it dies, until no run is left. Recovery does not wait for
/// its silence.
async fn supervise(db: &TestDb, flow: &str) {
    let left = "select count(*) from pgflow.runs where status = 'started'";
    for _ in 0..20 {
        let mut process = start_process(db, flow);
        loop {
            let left: i64 = sqlx::query_scalar(left).fetch_one(&db.pool).await.unwrap();
            if left == 0 {
                process.kill().await.unwrap();
                return;
            }
            if process.try_wait().unwrap().is_some() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        for died in [
            "update pgflow.workers set stopped_at = clock_timestamp() where stopped_at is null",
            "update pgflow.claims set look_at = least(look_at, now())",
            "select pgflow.requeue_stalled_tasks()",
        ] {
            sqlx::query(died).execute(&db.pool).await.unwrap();
        }
    }
    panic!("the process has died 20 times");
}

/// Ten runs, and how often each was started: attempt and limit, as its handler was told.
async fn ten<F: Flow<Input = u32>>(flow: &str) -> (TestDb, Vec<Uuid>, Vec<Vec<(i32, i32)>>) {
    let db = TestDb::new().await;
    sqlx::query("create table starts (n serial, input int, attempt int, max_attempts int)")
        .execute(&db.pool)
        .await
        .unwrap();
    // The definition is the process's to store.
    let mut process = start_process(&db, flow);
    super::until_workers(&db.pool, 1).await;
    process.kill().await.unwrap();
    sqlx::query("update pgflow.workers set stopped_at = clock_timestamp()")
        .execute(&db.pool)
        .await
        .unwrap();
    let client = Client::new(db.pool.clone());
    let mut runs = Vec::new();
    for input in 0..10 {
        runs.push(client.start::<F>(&input).await.unwrap().run_id());
    }
    supervise(&db, flow).await;
    let mut starts = Vec::new();
    for input in 0..10 {
        let query = "select attempt, max_attempts from starts where input = $1 order by n";
        let of_input: Vec<(i32, i32)> = sqlx::query_as(query)
            .bind(input)
            .fetch_all(&db.pool)
            .await
            .unwrap();
        starts.push(of_input);
    }
    (db, runs, starts)
}

#[tokio::test]
async fn of_ten_inputs_nine_complete_and_the_one_that_aborts_the_process_is_given_up() {
    let (db, runs, starts) = ten::<often::Often>("often").await;
    let client = Client::new(db.pool.clone());
    for (input, run_id) in (0..).zip(runs) {
        let run = client.run::<often::Often>(run_id);
        let ended = run.wait().timeout(DEADLINE).await;
        if input != POISON {
            assert_eq!(ended.unwrap().work, input);
            continue;
        }
        let Err(RunError::Failed { message, .. }) = ended else {
            panic!("it completed");
        };
        assert!(message.contains("in which it ran alone"), "{message}");
        let blame = "the input of step \"work\", task 0, brings the process down";
        assert!(message.contains(blame), "{message}");
    }
    for (input, starts) in (0..).zip(&starts) {
        let numbers: Vec<i32> = (1..).take(starts.len()).collect();
        let attempts: Vec<i32> = starts.iter().map(|&(attempt, _)| attempt).collect();
        assert_eq!(attempts, numbers, "of {input}");
        assert!(starts.iter().all(|(attempt, most)| attempt <= most));
        assert!(starts.len() <= 4, "{input} was started {starts:?}");
    }
    assert_eq!(starts[POISON as usize], [(1, 3), (2, 3), (3, 3), (4, 4)]);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn with_one_attempt_each_input_runs_once() {
    let (db, _, starts) = ten::<once::Once>("once").await;
    assert_eq!(starts, vec![vec![(1, 1)]; 10]);
    assert_invariants(&db.pool).await;
}
