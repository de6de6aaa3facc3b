use pgflow_migrations::{FUNCTIONS, LATEST_VERSION, PROTOCOL_VERSION};
use pgflow_runtime::migrate::{self, MigrateError, Migrator, PgmqState};
use sqlx::postgres::PgPoolOptions;

use super::blank;

#[tokio::test]
async fn a_blank_database_gets_everything_and_the_second_time_nothing() {
    let database = blank().await;
    let report = migrate::migrate(&database.pool).await.unwrap();
    assert_eq!((report.from_version, report.to_version), (0, LATEST_VERSION));
    assert_eq!(report.functions.len(), FUNCTIONS.len());
    assert!(report.installed_pgmq);
    assert!(matches!(report.pgmq, PgmqState::Sql { version: Some(_) } | PgmqState::Extension { .. }));

    let before = database.dump().await;
    let times = "select string_agg(applied_at::text, ',' order by 1) from (
        select applied_at from pgflow.schema_migrations union all select applied_at from pgflow.schema_functions) t";
    let applied_at = database.text(times).await;
    let again = migrate::migrate(&database.pool).await.unwrap();
    assert!(again.is_unchanged(), "{again:?}");
    assert_eq!(again.to_string(), format!("up to date at migration {LATEST_VERSION}"));
    assert_eq!(database.dump().await, before);
    assert_eq!(database.text(times).await, applied_at);
    let protocol = database.count("select protocol_version::bigint from pgflow.installation").await;
    assert_eq!(protocol, i64::from(PROTOCOL_VERSION));
}

#[tokio::test]
async fn twenty_at_once_apply_it_once() {
    let database = blank().await;
    let calls = (0..20).map(|_| {
        let pool = database.pool.clone();
        tokio::spawn(async move { migrate::migrate(&pool).await })
    });
    let mut applied = 0;
    for call in calls.collect::<Vec<_>>() {
        let report = call.await.unwrap().unwrap();
        applied += usize::from(!report.is_unchanged());
        assert_eq!(report.to_version, LATEST_VERSION);
    }
    assert_eq!(applied, 1);
}
