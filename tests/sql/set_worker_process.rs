//! `set_worker_process`: where a worker runs.

use sqlx::PgPool;
use uuid::Uuid;

use crate::support::TestDb;
use crate::support::flows::{define, worker};

async fn set(pool: &PgPool, worker: Option<Uuid>, host: &str) -> Result<(), sqlx::Error> {
    sqlx::query("select pgflow.set_worker_process($1, $2, 42)")
        .bind(worker)
        .bind(host)
        .execute(pool)
        .await
        .map(drop)
}

fn code(error: &sqlx::Error) -> String {
    let code = error
        .as_database_error()
        .and_then(sqlx::error::DatabaseError::code);
    code.expect("the database's error").into_owned()
}

#[tokio::test]
async fn it_is_kept_in_the_workers_row_and_a_long_name_is_cut() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[]).await;
    let worker = worker(&db.pool, "orders").await;
    set(&db.pool, Some(worker), &"h".repeat(300)).await.unwrap();
    let (host, pid): (String, i64) = sqlx::query_as("select host, pid from pgflow.workers")
        .fetch_one(&db.pool)
        .await
        .unwrap();
    assert_eq!((host, pid), ("h".repeat(255), 42));
}

#[tokio::test]
async fn an_unknown_worker_and_none_are_refused() {
    let db = TestDb::new().await;
    let unknown = set(&db.pool, Some(Uuid::now_v7()), "h").await.unwrap_err();
    assert_eq!(code(&unknown), "PF007");
    assert_eq!(code(&set(&db.pool, None, "h").await.unwrap_err()), "PF009");
}
