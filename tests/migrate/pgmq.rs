use pgflow_runtime::migrate::{self, MigrateError, PgmqState};

use super::blank;

#[tokio::test]
async fn what_is_there_is_used_as_it_is() {
    let database = blank().await;
    migrate::migrate(&database.pool).await.unwrap();
    database
        .run("drop schema pgflow cascade; comment on function pgmq.create(text) is 'ours'")
        .await;
    let report = migrate::migrate(&database.pool).await.unwrap();
    assert!(!report.installed_pgmq);
    assert!(!report.is_unchanged());
    assert_eq!(
        database
            .text("select obj_description('pgmq.create(text)'::regprocedure)")
            .await,
        "ours"
    );
}

#[tokio::test]
async fn sql_installed_by_hand_is_used_without_a_version() {
    let database = blank().await;
    migrate::migrate(&database.pool).await.unwrap();
    database.forget_extension().await;
    database
        .run("drop schema pgflow cascade; drop table if exists pgmq.__pgmq_migrations")
        .await;
    let report = migrate::migrate(&database.pool).await.unwrap();
    assert_eq!(report.pgmq, PgmqState::Sql { version: None });
}

#[tokio::test]
async fn an_empty_schema_is_filled() {
    let database = blank().await;
    database.run("create schema pgmq; create table pgmq.__pgmq_migrations (name text primary key, version text not null, run_at timestamptz not null default clock_timestamp())").await;
    assert!(
        migrate::migrate(&database.pool)
            .await
            .unwrap()
            .installed_pgmq
    );
}

#[tokio::test]
async fn an_incomplete_schema_is_refused_with_what_is_missing() {
    let database = blank().await;
    migrate::migrate(&database.pool).await.unwrap();
    database.forget_extension().await;
    database
        .run("drop schema pgflow cascade; drop function pgmq.archive(text, bigint[]); drop function pgmq.set_vt(text, bigint, integer)")
        .await;
    let refused = migrate::migrate(&database.pool).await.unwrap_err();
    let MigrateError::PgmqIncomplete { missing } = &refused else {
        panic!("{refused:?}")
    };
    assert_eq!(
        missing,
        &[
            "pgmq.archive(text, bigint[])",
            "pgmq.set_vt(text, bigint, integer)"
        ]
    );
    assert_eq!(database.schemas().await, ["pgmq"]);
    let status = migrate::status(&database.pool).await.unwrap();
    assert!(matches!(status.pgmq, PgmqState::Incomplete { .. }));
}

/// A database with PGMQ of an administrator, and its owner, who installs pgflow.
async fn with_pgmq_of_an_administrator() -> (super::Blank, sqlx::PgPool, String) {
    let database = blank().await;
    migrate::migrate(&database.pool).await.unwrap();
    let role = format!("owner_of_{}", database.name);
    let pool = database.pool_of_new_role(&role).await;
    database
        .run(format!(
            "drop schema pgflow cascade; alter database {} owner to {role}",
            database.name
        ))
        .await;
    (database, pool, role)
}

#[tokio::test]
async fn rights_that_an_administrator_did_not_grant_are_named_and_their_grants_are_enough() {
    let (database, pool, role) = with_pgmq_of_an_administrator().await;
    let report = migrate::migrate(&pool).await.unwrap();
    let grants = &report.missing_grants;
    assert_eq!(grants[0], format!("grant usage on schema pgmq to {role}"));
    for grant in grants {
        assert!(report.to_string().contains(grant), "{report}");
    }
    assert_eq!(
        &migrate::status(&pool).await.unwrap().missing_grants,
        grants
    );
    database.run(grants.join("; ")).await;
    migrate::migrate(&pool).await.unwrap();
    let status = migrate::status(&pool).await.unwrap();
    assert!(status.is_current(), "{status:?}");
    // All that an owner does with queues.
    sqlx::raw_sql(
        "select pgflow.create_flow('orders'); select pgflow.add_step('orders', 'one');
         select pgflow.start_flow('orders', '{}'); select pgflow.delete_flow_and_data('orders')",
    )
    .execute(&pool)
    .await
    .unwrap();
}

#[tokio::test]
async fn a_right_that_is_taken_later_is_shown_whoever_asks() {
    let (database, pool, role) = with_pgmq_of_an_administrator().await;
    database
        .run(format!(
            "grant all on schema pgmq to {role}; grant all on all tables in schema pgmq to {role}"
        ))
        .await;
    migrate::migrate(&pool).await.unwrap();
    for (revoked, grant) in [
        (
            "delete on pgmq.meta",
            "grant select, insert, update, delete on table pgmq.meta to",
        ),
        ("create on schema pgmq", "grant create on schema pgmq to"),
    ] {
        database.run(format!("revoke {revoked} from {role}")).await;
        // Also to the superuser, who lacks nothing.
        for asking in [&pool, &database.pool] {
            let status = migrate::status(asking).await.unwrap();
            assert_eq!(status.missing_grants, [format!("{grant} {role}")]);
            assert!(!status.is_current());
        }
        database.run(format!("grant {revoked} to {role}")).await;
    }
}

#[tokio::test]
async fn an_extension_whose_queues_no_dump_has_is_warned_about() {
    let database = blank().await;
    migrate::migrate(&database.pool).await.unwrap();
    database.forget_extension().await;
    // A stand-in for the extension, whose version is all that counts.
    database
        .run(
            "insert into pg_catalog.pg_extension (oid, extname, extowner, extnamespace, extrelocatable, extversion)
             values (99999, 'pgmq', 10, 'pgmq'::regnamespace, false, '1.5.1')",
        )
        .await;
    let report = migrate::migrate(&database.pool).await.unwrap();
    assert!(report.is_unchanged());
    let warning = "pg_dump leaves out all queues with extension pgmq 1.5.1";
    assert!(report.to_string().contains(warning), "{report}");
    let status = migrate::status(&database.pool).await.unwrap();
    assert!(
        status.warnings[0].contains(warning),
        "{:?}",
        status.warnings
    );
    assert!(status.is_current());
    database
        .run("update pg_catalog.pg_extension set extversion = '1.6.0' where extname = 'pgmq'")
        .await;
    assert!(
        migrate::status(&database.pool)
            .await
            .unwrap()
            .warnings
            .is_empty()
    );
    database
        .run("delete from pg_catalog.pg_extension where extname = 'pgmq'")
        .await;
}
