//! Workers find new tasks by the database's notifications. They would poll once an hour only.

use std::{thread, time::Duration};

use pgflow::client::Client;
use pgflow::prelude::*;
use pgflow::worker::{WorkerHandle, WorkersHandle};
use sqlx::PgPool;
use tokio::runtime::{self, Runtime};
use uuid::Uuid;

use super::backends::{connections, listening, named_pool, terminate, until_listening};
use super::{DEADLINE, until_task_is};
use crate::support::{TestDb, eventually, invariants::assert_invariants};

const NEVER: Duration = Duration::from_hours(1);

struct Ping;

#[flow(input = u32)]
impl Ping {
    #[step]
    async fn answer(input: u32) -> StepResult<u32> {
        Ok(input)
    }
}

async fn start(pool: &PgPool) -> WorkerHandle {
    let worker = FlowWorker::<Ping>::new().poll_interval(NEVER);
    worker.start(pool).await.unwrap()
}

/// As a program does that knows nothing of this process's workers; a client here would wake them
/// itself.
async fn start_by_sql(pool: &PgPool) -> Uuid {
    sqlx::query_scalar("select run_id from pgflow.start_flow('ping', '1')")
        .fetch_one(pool)
        .await
        .unwrap()
}

/// Runs are taken without a poll. One alone could be found because the worker looks when it starts
/// to listen.
async fn expect_wakeups(database: &TestDb) {
    for _ in 0..3 {
        let run_id = start_by_sql(&database.pool).await;
        until_task_is(&database.pool, run_id, Step::Answer, "completed").await;
    }
}

#[tokio::test]
async fn a_run_that_somebody_else_starts_is_taken_without_a_poll() {
    let database = TestDb::new().await;
    let pool = named_pool(&database, "listener", 3);
    let worker = start(&pool).await;
    until_listening(&database, "listener", None).await;
    expect_wakeups(&database).await;
    worker.stop().await.unwrap();
    assert_invariants(&database.pool).await;
}

#[tokio::test]
async fn a_lost_connection_is_made_anew_and_what_came_meanwhile_is_found() {
    let database = TestDb::new().await;
    let pool = named_pool(&database, "listener", 3);
    let worker = start(&pool).await;
    let mut pid = until_listening(&database, "listener", None).await;
    expect_wakeups(&database).await;
    for _ in 0..3 {
        terminate(&database, pid).await;
        // Nobody listens.
        let run_id = start_by_sql(&database.pool).await;
        until_task_is(&database.pool, run_id, Step::Answer, "completed").await;
        pid = until_listening(&database, "listener", Some(pid)).await;
        expect_wakeups(&database).await;
    }
    worker.stop().await.unwrap();
    assert_invariants(&database.pool).await;
}

#[tokio::test]
async fn thirty_workers_have_one_connection_for_it_and_it_goes_with_the_last() {
    let database = TestDb::new().await;
    let pool = named_pool(&database, "listener", 4);
    let mut workers = Workers::new(&pool);
    for _ in 0..30 {
        workers = workers.add(FlowWorker::<Ping>::new().poll_interval(NEVER));
    }
    let workers: WorkersHandle = workers.start().await.unwrap();
    until_listening(&database, "listener", None).await;
    expect_wakeups(&database).await;
    let beats_together = "select count(*) = 30 and max(last_heartbeat_at) - min(last_heartbeat_at) < interval '1 s' \
         and min(last_heartbeat_at) > max(started_at) from pgflow.workers";
    eventually(DEADLINE, "all workers have beaten", async || {
        let beat: bool = sqlx::query_scalar(beats_together)
            .fetch_one(&database.pool)
            .await
            .unwrap();
        beat.then_some(())
    })
    .await;
    assert_eq!(listening(&database, "listener").await.len(), 1);
    // Recovery has another one for a moment.
    eventually(DEADLINE, "there is one beside the pool's", async || {
        (connections(&database, "listener").await == i64::from(pool.size()) + 1).then_some(())
    })
    .await;
    workers.stop().await.unwrap();
    eventually(DEADLINE, "nobody listens", async || {
        (connections(&database, "listener").await == i64::from(pool.size())).then_some(())
    })
    .await;
    assert_invariants(&database.pool).await;
}

#[tokio::test]
async fn who_does_not_want_notifications_does_not_listen_and_polls() {
    let database = TestDb::new().await;
    let pool = named_pool(&database, "listener", 3);
    let workers = Workers::new(&pool)
        .add(FlowWorker::<Ping>::new().poll_interval(Duration::from_millis(100)))
        .listen(false)
        .start()
        .await
        .unwrap();
    expect_wakeups(&database).await;
    until_beaten(&database, workers.worker_ids()[0]).await;
    let listens = "select count(*) from pg_stat_activity where query like 'LISTEN %' and datname = current_database()";
    let listens: i64 = sqlx::query_scalar(listens)
        .fetch_one(&database.pool)
        .await
        .unwrap();
    assert_eq!(listens, 0);
    // Another one does.
    let hearing = start(&pool).await;
    let pid = eventually(DEADLINE, "somebody listens", async || {
        sqlx::query_scalar::<_, i32>(
            "select pid from pg_stat_activity where query like 'LISTEN %' and datname = current_database()",
        )
        .fetch_optional(&database.pool)
        .await
        .unwrap()
    })
    .await;
    hearing.stop().await.unwrap();
    eventually(DEADLINE, "nobody listens any more", async || {
        let is_there = listening(&database, "listener").await.contains(&pid);
        (!is_there).then_some(())
    })
    .await;
    workers.stop().await.unwrap();
    assert_invariants(&database.pool).await;
}

/// Waits until the worker says again that it lives.
async fn until_beaten(database: &TestDb, worker_id: Uuid) {
    let before = last_heartbeat(database, worker_id).await;
    eventually(DEADLINE, "the next heartbeat", async || {
        (last_heartbeat(database, worker_id).await != before).then_some(())
    })
    .await;
}

async fn last_heartbeat(database: &TestDb, worker_id: Uuid) -> String {
    sqlx::query_scalar("select last_heartbeat_at::text from pgflow.workers where worker_id = $1")
        .bind(worker_id)
        .fetch_one(&database.pool)
        .await
        .unwrap()
}

#[tokio::test]
async fn when_the_first_worker_stops_the_others_go_on_over_the_same_connection() {
    let database = TestDb::new().await;
    let pool = named_pool(&database, "listener", 4);
    let first = start(&pool).await;
    let pid = until_listening(&database, "listener", None).await;
    let (second, third) = (start(&pool).await, start(&pool).await);
    for one in [first, second] {
        one.stop().await.unwrap();
        expect_wakeups(&database).await;
        until_beaten(&database, third.worker_id()).await;
        assert_eq!(until_listening(&database, "listener", None).await, pid);
    }
    third.stop().await.unwrap();
    assert_invariants(&database.pool).await;
}

/// A runtime with the first worker of the pool; nobody runs it unless it is entered again.
async fn start_elsewhere(pool: &PgPool, database: &TestDb) -> (Runtime, WorkerHandle, i32) {
    let (pool, url) = (pool.clone(), database.url.clone());
    let started = tokio::task::spawn_blocking(move || {
        let runtime = runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let (worker, pid) = runtime.block_on(async {
            let worker = start(&pool).await;
            let observer = PgPool::connect(&url).await.unwrap();
            let pid = eventually(DEADLINE, "it listens", async || {
                sqlx::query_scalar::<_, i32>(
                    "select pid from pg_stat_activity where query like 'LISTEN %' and datname = current_database()",
                )
                .fetch_optional(&observer)
                .await
                .unwrap()
            })
            .await;
            observer.close().await;
            // Nobody else could use them: they belong to this runtime.
            while let Some(idle) = pool.try_acquire() {
                idle.close().await.unwrap();
            }
            (worker, pid)
        });
        (runtime, worker, pid)
    });
    started.await.unwrap()
}

#[tokio::test]
async fn when_the_runtime_of_the_first_worker_is_dropped_the_others_go_on() {
    let database = TestDb::new().await;
    let pool = named_pool(&database, "listener", 4);
    let (runtime, first, _) = start_elsewhere(&pool, &database).await;
    let worker = start(&pool).await;
    thread::spawn(move || drop(runtime)).join().unwrap();
    drop(first);
    expect_wakeups(&database).await;
    until_beaten(&database, worker.worker_id()).await;
    until_listening(&database, "listener", None).await;
    worker.stop().await.unwrap();
    assert_invariants(&database.pool).await;
}

#[tokio::test]
async fn when_the_runtime_of_the_first_worker_stands_still_both_live() {
    let database = TestDb::new().await;
    let pool = named_pool(&database, "listener", 4);
    let (runtime, first, pid) = start_elsewhere(&pool, &database).await;
    let worker = start(&pool).await;
    expect_wakeups(&database).await;
    for worker_id in [worker.worker_id(), first.worker_id()] {
        until_beaten(&database, worker_id).await;
    }
    assert_eq!(until_listening(&database, "listener", None).await, pid);
    worker.stop().await.unwrap();
    thread::spawn(move || drop((first, runtime)))
        .join()
        .unwrap();
    assert_invariants(&database.pool).await;
}

#[tokio::test]
async fn a_client_of_the_same_process_needs_no_notification() {
    let database = TestDb::new().await;
    sqlx::raw_sql("update pgflow.installation set wakeups = false")
        .execute(&database.pool)
        .await
        .unwrap();
    let worker = start(&database.pool).await;
    let client = Client::new(database.pool.clone());
    for input in 0..3 {
        let run = client.start::<Ping>(&input).await.unwrap();
        assert_eq!(run.wait().timeout(DEADLINE).await.unwrap().answer, input);
    }
    worker.stop().await.unwrap();
    assert_invariants(&database.pool).await;
}
