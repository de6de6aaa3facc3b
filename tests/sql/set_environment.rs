//! `set_environment`.

use sqlx::postgres::{PgPool, PgQueryResult};

use crate::support::TestDb;
use crate::support::rows::raised;

async fn set(pool: &PgPool, environment: Option<&str>) -> sqlx::Result<PgQueryResult> {
    sqlx::query("select pgflow.set_environment(environment => $1)")
        .bind(environment)
        .execute(pool)
        .await
}

async fn environment(pool: &PgPool) -> String {
    sqlx::query_scalar("select environment from pgflow.installation")
        .fetch_one(pool)
        .await
        .expect("one installation")
}

#[tokio::test]
async fn a_database_is_production_until_it_is_said_to_be_local() {
    let db = TestDb::new().await;
    assert_eq!(environment(&db.pool).await, "production");
    for wanted in ["local", "local", "production"] {
        set(&db.pool, Some(wanted)).await.expect("set");
        assert_eq!(environment(&db.pool).await, wanted);
    }
}

#[tokio::test]
async fn another_environment_is_refused() {
    let db = TestDb::new().await;
    for (wrong, shown) in [
        (Some("Local"), "Local"),
        (Some("staging"), "staging"),
        (Some(""), ""),
        (None, "<NULL>"),
    ] {
        assert_eq!(
            raised(set(&db.pool, wrong).await),
            format!("PF009: environment \"{shown}\" is unknown; it is \"production\" or \"local\"")
        );
    }
    assert_eq!(environment(&db.pool).await, "production");
}
