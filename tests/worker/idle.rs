//! The cost of idle workers for a database.

use pgflow::prelude::*;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{ConnectOptions, Connection, PgConnection};

use super::{DEADLINE, backends::until_listening};
use crate::support::{TestDb, eventually};

/// A flow with many steps that do not depend on each other.
macro_rules! wide {
    ($($step:ident)*) => {
        struct Wide;

        #[flow(input = u32, with_step_queues)]
        impl Wide {
            $(
                #[step]
                async fn $step(input: u32) -> StepResult<u32> {
                    Ok(input)
                }
            )*
        }
    };
}

wide! {
    s0 s1 s2 s3 s4 s5 s6 s7 s8 s9
    s10 s11 s12 s13 s14 s15 s16 s17 s18 s19
    s20 s21 s22 s23 s24 s25 s26 s27 s28 s29
}

/// A session that has nothing more to do reports after 10 seconds what it did.
const SETTLED_SECONDS: f64 = 12.0;
const WINDOW_SECONDS: f64 = 15.0;
/// One look for all 30 workers comes somewhat more often than once in a second; all else together
/// is less than one in a second.
const MOST_PER_SECOND: f64 = 5.0;

/// A session in another database: what it does is not counted.
async fn observer(database: &TestDb) -> PgConnection {
    let options: PgConnectOptions = database.url.parse().unwrap();
    options.database("postgres").connect().await.unwrap()
}

/// The transactions of the database so far, and the server's clock.
async fn transactions(observer: &mut PgConnection, database: &TestDb) -> (f64, f64) {
    sqlx::query_as(
        "select (xact_commit + xact_rollback)::float8, extract(epoch from clock_timestamp())::float8 \
         from pg_stat_database where datname = $1",
    )
    .bind(&database.name)
    .fetch_one(observer)
    .await
    .unwrap()
}

/// The same, once the clock shows this time.
async fn at(time: f64, observer: &mut PgConnection, database: &TestDb) -> (f64, f64) {
    eventually(DEADLINE * 6, "the time is over", async || {
        let now = transactions(observer, database).await;
        (now.1 >= time).then_some(now)
    })
    .await
}

#[tokio::test]
async fn thirty_step_workers_of_a_process_make_few_statements() {
    let database = TestDb::new().await;
    let options: PgConnectOptions = database.url.parse().unwrap();
    let pool = PgPoolOptions::new()
        .max_connections(10)
        .connect_lazy_with(options.application_name("idle"));
    let workers = StepWorker::<Wide>::all().start(&pool).await.unwrap();
    assert_eq!(workers.worker_ids().len(), 30);
    until_listening(&database, "idle", None).await;

    // The test's own sessions report what they did when they end.
    database.pool.close().await;
    let mut observer = observer(&database).await;
    let (_, started) = transactions(&mut observer, &database).await;
    let (before, since) = at(started + SETTLED_SECONDS, &mut observer, &database).await;
    let (after, until) = at(since + WINDOW_SECONDS, &mut observer, &database).await;
    let per_second = (after - before) / (until - since);
    println!("{per_second:.1} transactions per second");
    assert!(per_second <= MOST_PER_SECOND, "{per_second}");
    // The count counts something.
    assert!(per_second >= 0.5, "{per_second}");
    workers.stop().await.unwrap();
    observer.close().await.unwrap();
}
