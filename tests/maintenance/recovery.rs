//! Recovery that an operator or a worker calls for.

use pgflow::operations;
use serde_json::json;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};

use crate::support::TestDb;
use crate::support::flows::{claim, define, start, step, worker};
use crate::support::rows::count;

/// A batch that is cut off would be the first of the next call again, forever.
#[tokio::test]
async fn no_statement_timeout_of_the_pool_cuts_recovery_off() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("a")]).await;
    start(&db.pool, "orders", json!({})).await;
    let gone = worker(&db.pool, "orders").await;
    assert_eq!(claim(&db.pool, gone, 1).await.len(), 1);
    sqlx::raw_sql(
        "update pgflow.workers set stopped_at = now();
         update pgflow.claims set look_at = now();
         create function public.slowly() returns trigger language plpgsql as
             $$ begin perform pg_sleep(0.5); return new; end $$;
         create trigger slowly before update on pgflow.step_tasks
             for each row execute function public.slowly()",
    )
    .execute(&db.pool)
    .await
    .expect("a slow database whose worker has stopped");
    let options: PgConnectOptions = db.url.parse().expect("a URL");
    let pool = PgPoolOptions::new()
        .connect_with(options.options([("statement_timeout", "200ms")]))
        .await
        .expect("a pool of the impatient");
    let cut_off = sqlx::query("select pg_sleep(0.5)").execute(&pool).await;
    cut_off.expect_err("the pool has a limit");
    let requeued = operations::requeue_stalled_tasks(&pool).await;
    assert_eq!(requeued.expect("recovered"), 1);
    assert_eq!(
        count(&db.pool, "pgflow.step_tasks where status = 'queued'").await,
        1
    );
}
