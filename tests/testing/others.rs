//! Concurrent use of the database: it is not disturbed, and does not disturb.

use std::time::Duration;

use pgflow::prelude::*;
use pgflow::testing::{RunToEndError, run_to_end};
use sqlx::PgPool;
use tokio::task::JoinSet;

use super::assert_nothing_left;
use crate::support::{TestDb, eventually};
use crate::worker::probe::Probe;

const DEADLINE: Duration = Duration::from_secs(20);

struct Double;

#[flow(input = Vec<u32>, state = Probe, base_delay = "1h")]
impl Double {
    #[step(map = input)]
    async fn double(item: u32, ctx: &StepContext, state: &Probe) -> StepResult<u32> {
        state.pass(format!("{item}")).await;
        if ctx.attempt() == 1 && item == 13 {
            Err("unlucky")?;
        }
        Ok(2 * item)
    }

    #[step(depends_on = [double])]
    async fn sum(double: &[u32]) -> StepResult<u32> {
        Ok(double.iter().sum())
    }
}

struct Elsewhere;

#[flow(input = u32, step_enum = ElsewhereStep)]
impl Elsewhere {
    #[step]
    async fn act(input: u32) -> StepResult<u32> {
        Ok(input)
    }
}

async fn double(pool: &PgPool, input: Vec<u32>) -> u32 {
    let run = run_to_end::<Double>(pool, &Probe::open(), input).await;
    run.unwrap().into_output().unwrap().sum
}

/// The flow's messages that belong to other runs than the newest, with all that a reader changes,
/// and the rows of their tasks.
async fn older_runs(pool: &PgPool) -> (i64, String) {
    sqlx::query_as(
        "select count(*), string_agg(format('%s %s %s %s', q.msg_id, q.read_ct, q.vt, t), E'\n' order by q.msg_id) \
         from pgmq.q_double q \
         join pgflow.step_tasks t on t.message_id = q.msg_id and t.queue_name = 'double'",
    )
    .fetch_one(pool)
    .await
    .unwrap()
}

#[tokio::test]
async fn other_runs_that_wait_stay_as_they_are() {
    let db = TestDb::new().await;
    assert_eq!(double(&db.pool, vec![1]).await, 2);
    let client = Client::new(db.pool.clone());
    for input in [vec![1, 2, 3], vec![], vec![4]] {
        client.start::<Double>(&input).await.unwrap();
    }
    let before = older_runs(&db.pool).await;
    // One of the runs had nothing to map over, so its second step waits.
    assert_eq!(before.0, 5);

    assert_eq!(double(&db.pool, vec![5, 13, 6]).await, 48);
    assert_eq!(older_runs(&db.pool).await, before);
    assert_nothing_left(&db.pool).await;
}

#[tokio::test]
async fn one_after_the_other() {
    let db = TestDb::new().await;
    for n in 1..=3 {
        assert_eq!(double(&db.pool, vec![n, 13]).await, 2 * n + 26);
    }
    assert_nothing_left(&db.pool).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn side_by_side_in_one_database() {
    let db = TestDb::new().await;
    let mut runs = JoinSet::new();
    for n in 0..8_u32 {
        let pool = db.pool.clone();
        runs.spawn(async move {
            if n % 4 == 3 {
                let run = run_to_end::<Elsewhere>(&pool, &(), n).await.unwrap();
                assert_eq!(run.into_output().unwrap().act, n);
            } else {
                assert_eq!(double(&pool, vec![n; 15]).await, 30 * n);
            }
        });
    }
    runs.join_all().await;
    assert_nothing_left(&db.pool).await;
}

#[tokio::test]
async fn a_flow_with_live_workers_is_refused_and_they_are_left_alone() {
    let db = TestDb::new().await;
    sqlx::query("select pgflow.set_environment('local')")
        .execute(&db.pool)
        .await
        .unwrap();
    let start = || {
        FlowWorker::<Double>::with_state(Probe::open())
            .poll_interval(Duration::from_millis(20))
            .start(&db.pool)
    };
    let worker = start().await.unwrap();
    let refused = run_to_end::<Double>(&db.pool, &Probe::open(), vec![1]).await;
    let refused = refused.unwrap_err();
    assert!(
        refused.to_string().ends_with(
            "\nstop them, or give the test a database of its own: name another one in DATABASE_URL, or run it without that variable, \
             where `DevDatabase` starts a private one"
        ),
        "{refused}"
    );
    match refused {
        RunToEndError::LiveWorkers { flow, workers } => {
            assert_eq!(flow, "double");
            assert_eq!(workers.len(), 1);
            assert_eq!(workers[0].function_name, "double");
        }
        other => panic!("{other}"),
    }
    let runs: i64 = sqlx::query_scalar("select count(*) from pgflow.runs")
        .fetch_one(&db.pool)
        .await
        .unwrap();
    assert_eq!(runs, 0);
    // Of another flow, any number may live.
    let run = run_to_end::<Elsewhere>(&db.pool, &(), 1).await.unwrap();
    assert!(run.error().is_none());
    // It still works.
    let client = Client::new(db.pool.clone());
    let run = client.start::<Double>(&vec![1]).await.unwrap();
    assert_eq!(run.wait().timeout(DEADLINE).await.unwrap().sum, 2);
    worker.stop().await.unwrap();
    assert_eq!(double(&db.pool, vec![1]).await, 2);
    assert_nothing_left(&db.pool).await;
}

#[tokio::test]
async fn a_worker_that_takes_part_is_noticed() {
    let db = TestDb::new().await;
    let probe = Probe::closed();
    let (pool, own) = (db.pool.clone(), probe.clone());
    let run = tokio::spawn(async move {
        run_to_end::<Double>(&pool, &own, (0..4).collect())
            .concurrency(1)
            .await
    });
    probe.until_seen("0").await;
    let worker = FlowWorker::<Double>::with_state(probe.clone());
    let worker = worker.start(&db.pool).await.unwrap();
    probe.until_seen("3").await;
    probe.let_all_go();
    match run.await.unwrap().unwrap_err() {
        RunToEndError::TakenByOthers {
            step,
            attempts,
            own,
            ..
        } => assert_eq!((&*step, attempts, own), ("double", 1, 0)),
        other => panic!("{other}"),
    }
    worker.stop().await.unwrap();
    assert_nothing_left(&db.pool).await;
}

#[tokio::test]
async fn a_call_that_is_dropped_leaves_no_worker() {
    let db = TestDb::new().await;
    let probe = Probe::closed();
    let (pool, own) = (db.pool.clone(), probe.clone());
    let run = tokio::spawn(async move { run_to_end::<Double>(&pool, &own, vec![1]).await });
    probe.until_seen("1").await;
    run.abort();
    assert!(run.await.unwrap_err().is_cancelled());
    eventually(DEADLINE, "the worker is marked as stopped", async || {
        let workers: i64 =
            sqlx::query_scalar("select count(*) from pgflow.workers where stopped_at is null")
                .fetch_one(&db.pool)
                .await
                .unwrap();
        (workers == 0).then_some(())
    })
    .await;
    // Its run is nobody's, and in nobody's way.
    assert_eq!(double(&db.pool, vec![2]).await, 4);
    assert_nothing_left(&db.pool).await;
}
