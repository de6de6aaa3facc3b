//! The start of workers, which leaves nothing behind when it fails.

use pgflow::prelude::*;
use pgflow::startup::StartupError;
use pgflow_runtime::migrate::{Migrator, NotReadyError};
use sqlx::PgPool;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use tokio::task::JoinSet;

use super::{define, worker};
use crate::support::TestDb;

mod first {
    use pgflow::prelude::*;

    pub(super) struct First;

    #[flow(input = u32, slug = "Audit", timeout = "30s")]
    impl First {
        #[step]
        async fn parse(input: u32) -> StepResult<u32> {
            Ok(input)
        }

        #[step(depends_on = [parse])]
        async fn report(parse: u32, input: u32) -> StepResult<u32> {
            Ok(parse + input)
        }
    }
}

/// Another shape under the same slug.
mod changed {
    use pgflow::prelude::*;

    pub(super) struct Changed;

    #[flow(input = u32, slug = "Audit")]
    impl Changed {
        #[step]
        async fn parse(input: u32) -> StepResult<u32> {
            Ok(input)
        }

        #[step]
        async fn report(input: u32) -> StepResult<u32> {
            Ok(input)
        }
    }
}

/// The same shape with other options.
mod tuned {
    use pgflow::prelude::*;

    pub(super) struct Tuned;

    #[flow(input = u32, slug = "Audit", timeout = "45s", max_attempts = 9)]
    impl Tuned {
        #[step]
        async fn parse(input: u32) -> StepResult<u32> {
            Ok(input)
        }

        #[step(depends_on = [parse])]
        async fn report(parse: u32) -> StepResult<u32> {
            Ok(parse)
        }
    }
}

use changed::Changed;
use first::First;
use tuned::Tuned;

/// Everything that a start may write.
async fn traces(pool: &PgPool) -> String {
    sqlx::query_scalar(
        "select jsonb_build_array( \
             (select coalesce(jsonb_agg(f order by flow_slug), '[]') from pgflow.flows f), \
             (select coalesce(jsonb_agg(s order by flow_slug, step_slug), '[]') from pgflow.steps s), \
             (select coalesce(jsonb_agg(d order by flow_slug, dep_slug, step_slug), '[]') from pgflow.deps d), \
             (select coalesce(jsonb_agg(w order by worker_id), '[]') from pgflow.workers w), \
             (select coalesce(jsonb_agg(w order by function_name), '[]') from pgflow.worker_functions w), \
             (select coalesce(jsonb_agg(q order by queue_name), '[]') from pgmq.meta q), \
             (select jsonb_agg(c.relname order by c.relname) from pg_class c where c.relnamespace = 'pgmq'::regnamespace) \
         )::text",
    )
    .fetch_one(pool)
    .await
    .unwrap()
}

async fn start_error<F>(pool: &PgPool) -> StartupError
where
    F: Flow<State = (), Queues = pgflow::OneQueue>,
{
    let started = worker::<F>(()).start(pool).await;
    started.expect_err("the worker must not start")
}

/// Returns the start error of `F`, after checking that the database is unchanged.
async fn refused<F>(pool: &PgPool) -> StartupError
where
    F: Flow<State = (), Queues = pgflow::OneQueue>,
{
    let before = traces(pool).await;
    let error = start_error::<F>(pool).await;
    assert_eq!(traces(pool).await, before, "after: {error}");
    error
}

#[tokio::test]
async fn a_started_worker_is_registered_with_what_it_serves() {
    let database = TestDb::new().await;
    let handle = worker::<First>(())
        .function_name("audit-eu")
        .start(&database.pool)
        .await
        .unwrap();
    let row: (String, String, Option<String>, String, Vec<String>, bool) = sqlx::query_as(
        "select w.function_name, w.flow_slug, w.step_slug, w.queue_name, w.flow_input_steps, f.enabled \
         from pgflow.workers w join pgflow.worker_functions f using (function_name) where worker_id = $1",
    )
    .bind(handle.worker_id())
    .fetch_one(&database.pool)
    .await
    .unwrap();
    assert_eq!(
        row,
        (
            "audit-eu".to_owned(),
            "Audit".to_owned(),
            None,
            "audit".to_owned(),
            // In the order of the definition.
            vec!["parse".to_owned(), "report".to_owned()],
            true
        )
    );
    assert_eq!(handle.worker_id().get_version_num(), 7);
    let (host, pid): (String, i64) = sqlx::query_as("select host, pid from pgflow.workers")
        .fetch_one(&database.pool)
        .await
        .unwrap();
    assert!(!host.is_empty());
    assert_eq!(pid, i64::from(std::process::id()));
    handle.stop().await.unwrap();
}

#[tokio::test]
async fn many_may_start_at_once() {
    let database = TestDb::new().await;
    let mut starts = JoinSet::new();
    for _ in 0..16 {
        let pool = database.pool.clone();
        starts.spawn(async move {
            let handle = worker::<First>(()).start(&pool).await.unwrap();
            handle.stop().await.unwrap();
        });
    }
    starts.join_all().await;
    let counts: (i64, i64, i64) = sqlx::query_as(
        "select (select count(*) from pgflow.flows), (select count(*) from pgflow.worker_functions), \
                (select count(*) from pgflow.workers where stopped_at is not null)",
    )
    .fetch_one(&database.pool)
    .await
    .unwrap();
    assert_eq!(counts, (1, 1, 16));
}

/// Whoever waits for the first start must see then what it stored.
#[tokio::test]
async fn many_may_start_at_once_where_transactions_are_serializable_by_default() {
    let database = TestDb::new().await;
    let options: PgConnectOptions = database.url.parse().unwrap();
    let pool = PgPoolOptions::new()
        .max_connections(16)
        .connect_with(options.options([("default_transaction_isolation", "serializable")]))
        .await
        .unwrap();
    let mut starts = JoinSet::new();
    for _ in 0..8 {
        let pool = pool.clone();
        starts.spawn(async move { worker::<First>(()).start(&pool).await.unwrap() });
    }
    for handle in starts.join_all().await {
        handle.stop().await.unwrap();
    }
    assert_eq!(pgflow_workers(&database.pool).await, 8);
}

async fn pgflow_workers(pool: &PgPool) -> i64 {
    sqlx::query_scalar("select count(*) from pgflow.workers")
        .fetch_one(pool)
        .await
        .unwrap()
}

#[tokio::test]
async fn other_options_are_no_mismatch_and_change_nothing() {
    let database = TestDb::new().await;
    define::<First>(&database.pool, ()).await;
    define::<Tuned>(&database.pool, ()).await;
    let options: (i32, i32) =
        sqlx::query_as("select opt_timeout, opt_max_attempts from pgflow.flows")
            .fetch_one(&database.pool)
            .await
            .unwrap();
    assert_eq!(options, (30, 3));
}

#[tokio::test]
async fn a_changed_shape_is_refused_with_its_differences() {
    let database = TestDb::new().await;
    define::<First>(&database.pool, ()).await;
    let error = refused::<Changed>(&database.pool).await;
    let StartupError::ShapeMismatch(mismatch) = &error else {
        panic!("{error}");
    };
    assert_eq!(
        mismatch.differences,
        [r#"step "report": a root step in the code, depends_on = [parse] in the database"#]
    );
}

#[tokio::test]
async fn other_routes_are_refused() {
    let database = TestDb::new().await;
    define::<First>(&database.pool, ()).await;
    sqlx::raw_sql("update pgflow.steps set queue_name = 'elsewhere' where step_slug = 'report'")
        .execute(&database.pool)
        .await
        .unwrap();
    let error = refused::<First>(&database.pool).await;
    assert!(matches!(error, StartupError::RoutingMismatch(_)), "{error}");
}

#[tokio::test]
async fn a_foreign_queue_is_not_taken() {
    let database = TestDb::new().await;
    sqlx::raw_sql("select pgmq.create('audit')")
        .execute(&database.pool)
        .await
        .unwrap();
    let error = refused::<First>(&database.pool).await;
    assert!(matches!(error, StartupError::QueueCollision(_)), "{error}");
}

#[tokio::test]
async fn a_disabled_function_does_not_even_leave_its_definition() {
    let database = TestDb::new().await;
    sqlx::raw_sql(
        "insert into pgflow.worker_functions (function_name, enabled, disabled_at, disabled_reason) \
         values ('Audit', false, now(), 'we roll out')",
    )
    .execute(&database.pool)
    .await
    .unwrap();
    let error = refused::<First>(&database.pool).await;
    let StartupError::FunctionDisabled(disabled) = &error else {
        panic!("{error}");
    };
    assert_eq!(disabled.reason.as_deref(), Some("we roll out"));
    assert!(disabled.since.is_some());
    // Another function may serve the flow.
    let other = worker::<First>(())
        .function_name("other")
        .start(&database.pool)
        .await
        .unwrap();
    other.stop().await.unwrap();
}

#[tokio::test]
async fn a_database_without_pgflow_is_left_alone() {
    let database = TestDb::blank().await;
    let error = start_error::<First>(&database.pool).await;
    assert!(
        matches!(
            error,
            StartupError::NotReady(NotReadyError::NotInstalled { .. })
        ),
        "{error}"
    );
    let schemas: i64 =
        sqlx::query_scalar("select count(*) from pg_namespace where nspname in ('pgflow', 'pgmq')")
            .fetch_one(&database.pool)
            .await
            .unwrap();
    assert_eq!(schemas, 0);
}

#[tokio::test]
async fn a_worker_migrates_when_it_is_told_to() {
    let database = TestDb::blank().await;
    let handle = worker::<First>(())
        .migrate(true)
        .start(&database.pool)
        .await
        .unwrap();
    handle.stop().await.unwrap();
}

#[tokio::test]
async fn a_newer_database_is_refused() {
    let database = TestDb::new().await;
    sqlx::raw_sql(
        "insert into pgflow.schema_migrations (version, name, digest) values (9999, 'future', '')",
    )
    .execute(&database.pool)
    .await
    .unwrap();
    let error = refused::<First>(&database.pool).await;
    assert!(
        matches!(
            error,
            StartupError::NotReady(NotReadyError::DatabaseNewer { database: 9999, .. })
        ),
        "{error}"
    );
}

#[tokio::test]
async fn another_protocol_is_refused() {
    let database = TestDb::new().await;
    sqlx::raw_sql("update pgflow.installation set protocol_version = protocol_version + 1")
        .execute(&database.pool)
        .await
        .unwrap();
    let error = refused::<First>(&database.pool).await;
    assert!(
        matches!(
            error,
            StartupError::NotReady(NotReadyError::Protocol { .. })
        ),
        "{error}"
    );
}

#[tokio::test]
async fn only_a_local_database_is_migrated_unasked() {
    for environment in ["production", "local"] {
        let database = TestDb::blank().await;
        Migrator::new().up_to(1).run(&database.pool).await.unwrap();
        sqlx::query("update pgflow.installation set environment = $1")
            .bind(environment)
            .execute(&database.pool)
            .await
            .unwrap();
        match worker::<First>(()).start(&database.pool).await {
            Ok(handle) => {
                assert_eq!(environment, "local");
                handle.stop().await.unwrap();
            }
            Err(error) => {
                assert_eq!(environment, "production");
                assert!(
                    matches!(
                        error,
                        StartupError::NotReady(NotReadyError::DatabaseOlder { .. })
                    ),
                    "{error}"
                );
            }
        }
    }
}
