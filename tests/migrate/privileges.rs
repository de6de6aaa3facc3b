use pgflow_runtime::migrate::{self, MigrateError, Migrator};
use sqlx::{AssertSqlSafe, Connection, PgConnection};

use super::{TABLES, blank};

#[tokio::test]
async fn an_ordinary_role_that_owns_the_database_is_enough() {
    let database = blank().await;
    let role = format!("owner_of_{}", database.name);
    let pool = database.pool_of_new_role(&role).await;
    database
        .run(format!(
            "alter database {} owner to {role}; revoke all on schema public from public",
            database.name
        ))
        .await;
    assert!(!migrate::migrate(&pool).await.unwrap().is_unchanged());
    assert!(migrate::migrate(&pool).await.unwrap().is_unchanged());
    assert!(migrate::status(&pool).await.unwrap().is_current());
}

#[tokio::test]
async fn a_role_that_may_not_create_schemas_is_told_the_grant_to_run() {
    let database = blank().await;
    let role = format!("Stranger to {}", database.name);
    let pool = database.pool_of_new_role(&role).await;

    let refused = migrate::migrate(&pool).await.unwrap_err();
    let MigrateError::CreateNotPermitted { grant, .. } = &refused else {
        panic!("{refused:?}")
    };
    assert_eq!(
        grant,
        &format!("grant create on database {} to \"{role}\"", database.name)
    );
    assert!(refused.to_string().contains(grant.as_str()));
    assert_eq!(database.schemas().await, Vec::<String>::new());

    database.run(grant.clone()).await;
    migrate::migrate(&pool).await.unwrap();

    // What is up to date needs no such privilege.
    database
        .run(
            grant
                .replace("grant", "revoke")
                .replace(" to ", " from ")
                .replace("Stranger from", "Stranger to"),
        )
        .await;
    assert!(migrate::migrate(&pool).await.unwrap().is_unchanged());
}

#[tokio::test]
async fn a_schema_made_for_the_role_needs_no_privilege_on_the_database() {
    let database = blank().await;
    let role = format!("tenant_of_{}", database.name);
    migrate::migrate(&database.pool).await.unwrap();
    database.run("drop schema pgflow cascade").await;
    let pool = database.pool_of_new_role(&role).await;
    database
        .run(format!("create schema pgflow authorization {role}"))
        .await;
    let migrator = Migrator::new().with_files(&[TABLES], &[]);
    assert_eq!(migrator.run(&pool).await.unwrap().to_version, 1);
    assert!(migrator.run(&pool).await.unwrap().is_unchanged());
}

#[tokio::test]
async fn functions_are_closed_to_the_public() {
    let database = blank().await;
    migrate::migrate(&database.pool).await.unwrap();
    let open: Vec<String> = sqlx::query_scalar(
        "select p.oid::regprocedure::text
         from pg_proc p
         cross join aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
         where p.pronamespace = 'pgflow'::regnamespace and a.grantee = 0",
    )
    .fetch_all(&database.pool)
    .await
    .unwrap();
    assert_eq!(open, Vec::<String>::new());
}

/// Queues are created with its rights: it would find out when the first flow is defined.
#[tokio::test]
async fn the_script_tells_a_role_that_may_not_create_queues_the_grants_to_run() {
    let database = blank().await;
    migrate::migrate(&database.pool).await.unwrap();
    database.forget_extension().await;
    database.run("drop schema pgflow cascade").await;
    let role = format!("queueless_{}", database.name);
    let pool = database.pool_of_new_role(&role).await;
    database
        .run(format!(
            "create schema pgflow authorization {role}; grant usage on schema pgmq to {role}"
        ))
        .await;
    let options = database.options.clone().username(&role);
    let mut session = PgConnection::connect_with(&options).await.unwrap();
    let by_script = sqlx::raw_sql(AssertSqlSafe(migrate::script()))
        .execute(&mut session)
        .await
        .unwrap_err()
        .to_string();
    session.close().await.unwrap();
    assert!(
        by_script.contains(&format!("role {role} may not create queues")),
        "{by_script}"
    );
    let (_, grants) = by_script.split_once("as its owner: ").unwrap();
    let end = grants.rfind(&role).unwrap() + role.len();
    database.run(&grants[..end]).await;
    migrate::migrate(&pool).await.unwrap();
    sqlx::raw_sql("select pgflow.create_flow('f'); select pgflow.delete_flow_and_data('f')")
        .execute(&pool)
        .await
        .unwrap();
}
