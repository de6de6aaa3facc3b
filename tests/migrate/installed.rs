use pgflow_migrations::{LATEST_VERSION, PROTOCOL_VERSION};
use pgflow_runtime::migrate::{self, Migrator, NotReadyError, check_installed};

use super::{Blank, blank};

async fn check(database: &Blank) -> Result<migrate::Installed, NotReadyError> {
    check_installed(&mut database.pool.acquire().await.unwrap()).await
}

#[tokio::test]
async fn a_database_is_ready_at_exactly_the_level_and_protocol_of_the_code() {
    let database = blank().await;
    let refused = check(&database).await.unwrap_err();
    assert!(matches!(
        refused,
        NotReadyError::NotInstalled {
            code: LATEST_VERSION
        }
    ));
    assert!(refused.to_string().contains("pgflow migrate"));

    Migrator::new().up_to(1).run(&database.pool).await.unwrap();
    let refused = check(&database).await.unwrap_err();
    assert!(matches!(
        refused,
        NotReadyError::DatabaseOlder {
            database: 1,
            code: LATEST_VERSION
        }
    ));
    assert!(refused.to_string().contains("pgflow migrate"));

    migrate::migrate(&database.pool).await.unwrap();
    let installed = check(&database).await.unwrap();
    assert_eq!(
        (installed.version, installed.environment.as_str()),
        (LATEST_VERSION, "production")
    );

    database
        .run("update pgflow.installation set protocol_version = 99")
        .await;
    let refused = check(&database).await.unwrap_err();
    assert!(matches!(
        refused,
        NotReadyError::Protocol {
            database: 99,
            code: PROTOCOL_VERSION
        }
    ));

    database
        .run("insert into pgflow.schema_migrations values (99, 'future', '')")
        .await;
    let refused = check(&database).await.unwrap_err();
    assert!(matches!(
        refused,
        NotReadyError::DatabaseNewer {
            database: 99,
            code: LATEST_VERSION
        }
    ));
    assert!(refused.to_string().contains("99"), "{refused}");
}

#[tokio::test]
async fn a_role_that_may_not_look_is_told_what_it_needs() {
    let database = blank().await;
    migrate::migrate(&database.pool).await.unwrap();
    let pool = database
        .pool_of_new_role(&format!("visitor_of_{}", database.name))
        .await;
    let refused = check_installed(&mut pool.acquire().await.unwrap())
        .await
        .unwrap_err();
    assert!(matches!(refused, NotReadyError::Database(_)));
    assert!(
        refused.to_string().contains("usage on schema pgflow"),
        "{refused}"
    );
}
