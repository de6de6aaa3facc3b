//! Databases of older releases.

use pgflow_migrations::{FUNCTIONS, LATEST_VERSION};
use pgflow_runtime::migrate::{self, Migrator};

use super::blank;

#[tokio::test]
async fn from_every_older_level_the_result_is_that_of_a_fresh_database() {
    let fresh = blank().await;
    migrate::migrate(&fresh.pool).await.unwrap();
    let expected = fresh.dump().await;
    for level in 1..LATEST_VERSION {
        let database = blank().await;
        let older = Migrator::new()
            .up_to(level)
            .run(&database.pool)
            .await
            .unwrap();
        assert_eq!((older.to_version, older.functions.len()), (level, 0));
        let report = migrate::migrate(&database.pool).await.unwrap();
        assert_eq!(
            (report.from_version, report.to_version),
            (level, LATEST_VERSION)
        );
        assert_eq!(report.functions.len(), FUNCTIONS.len());
        assert_eq!(database.dump().await, expected, "from level {level}");
    }
}

#[tokio::test]
async fn an_older_level_is_not_gone_back_to() {
    let database = blank().await;
    migrate::migrate(&database.pool).await.unwrap();
    let report = Migrator::new().up_to(1).run(&database.pool).await.unwrap();
    assert!(report.is_unchanged());
    assert_eq!(report.to_version, LATEST_VERSION);
}
