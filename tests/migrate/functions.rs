//! Functions from release to release; small releases stand in for pgflow's own.

use pgflow_migrations::{Function, Migration};
use pgflow_runtime::migrate::{MigrateError, MigrateReport, Migrator};

use super::{Blank, TABLES, blank, chain};

const A: Function = Function {
    name: "a",
    sql: "create or replace function pgflow.a(x int) returns int language sql as $$ select pgflow.b() $$;",
};
const B: Function = Function {
    name: "b",
    sql: "create or replace function pgflow.b() returns int language sql as $$ select 1 $$;",
};
const FIRST: Migrator = migrator(&[TABLES], &[A, B]);

const fn migrator(migrations: &'static [Migration], functions: &'static [Function]) -> Migrator {
    Migrator::new().with_files(migrations, functions)
}

async fn first_release() -> Blank {
    let database = blank().await;
    let report = FIRST.run(&database.pool).await.unwrap();
    assert_eq!(report.functions, ["a", "b"]);
    database
}

async fn upgrade(database: &Blank, to: Migrator) -> MigrateReport {
    let report = to.run(&database.pool).await.unwrap();
    assert!(to.run(&database.pool).await.unwrap().is_unchanged());
    report
}

async fn signatures(database: &Blank) -> Vec<String> {
    sqlx::query_scalar("select oid::regprocedure::text from pg_proc where pronamespace = 'pgflow'::regnamespace order by 1")
        .fetch_all(&database.pool)
        .await
        .unwrap()
}

#[tokio::test]
async fn only_a_changed_text_is_applied() {
    const NEW: Function = Function {
        name: "b",
        sql: "create or replace function pgflow.b() returns int language sql as $$ select 2 $$;",
    };
    let database = first_release().await;
    let report = upgrade(&database, migrator(&[TABLES], &[A, NEW])).await;
    assert_eq!(report.functions, ["b"]);
    assert!(report.dropped_functions.is_empty());
    assert_eq!(database.count("select pgflow.a(0)::bigint").await, 2);
}

const NEXT: Migration = Migration {
    version: 2,
    name: "next",
    sql: "create table pgflow.another (n int);",
};

/// Calls in flight began before the release that lost it, and call it after that.
#[tokio::test]
async fn a_function_that_is_gone_stays_until_the_tables_change_again() {
    let database = first_release().await;
    let report = upgrade(&database, migrator(&[TABLES], &[B])).await;
    assert_eq!(report.dropped_functions, [""; 0]);
    assert_eq!(
        signatures(&database).await,
        ["pgflow.a(integer)", "pgflow.b()"]
    );
    let report = upgrade(&database, migrator(&[TABLES, NEXT], &[B])).await;
    assert_eq!(report.dropped_functions, ["pgflow.a(integer)"]);
    assert_eq!(signatures(&database).await, ["pgflow.b()"]);
}

#[tokio::test]
async fn the_script_keeps_and_drops_the_same_functions() {
    let database = first_release().await;
    for (to, left) in [
        (migrator(&[TABLES], &[B]), 2),
        (migrator(&[TABLES], &[B]), 2),
        (migrator(&[TABLES, NEXT], &[B]), 1),
    ] {
        database.run_alone(to.script()).await;
        assert_eq!(signatures(&database).await.len(), left);
        assert!(to.run(&database.pool).await.unwrap().is_unchanged());
    }
}

#[tokio::test]
async fn a_function_that_a_numbered_file_replaces_keeps_its_grants() {
    const DROP: Migration = Migration {
        version: 2,
        name: "a_returns_text",
        sql: "drop function if exists pgflow.a(int);",
    };
    let to = migrator(&[TABLES, DROP], &[A_RETURNS_TEXT, B]);
    for by_script in [false, true] {
        let database = first_release().await;
        let role = format!("caller_of_{}", database.name);
        database
            .run(format!(
                "create role \"{role}\"; grant execute on function pgflow.a to \"{role}\" with grant option"
            ))
            .await;
        if by_script {
            database.run_alone(to.script()).await;
        } else {
            to.run(&database.pool).await.unwrap();
        }
        let granted: bool = sqlx::query_scalar(
            "select has_function_privilege($1, 'pgflow.a(int)', 'execute with grant option')",
        )
        .bind(&role)
        .fetch_one(&database.pool)
        .await
        .unwrap();
        assert!(granted, "by script: {by_script}");
    }
}

#[tokio::test]
async fn new_parameter_types_replace_the_recorded_signature() {
    const NEW: Function = Function {
        name: "a",
        sql: "create or replace function pgflow.a(x int, y text) returns int language sql as $$ select 3 $$;",
    };
    let database = first_release().await;
    let report = upgrade(&database, migrator(&[TABLES], &[NEW, B])).await;
    assert_eq!(report.dropped_functions, ["pgflow.a(integer)"]);
    assert_eq!(
        signatures(&database).await,
        ["pgflow.a(integer,text)", "pgflow.b()"]
    );
}

const A_RETURNS_TEXT: Function = Function {
    name: "a",
    sql: "create or replace function pgflow.a(x int) returns text language sql as $$ select 'a' $$;",
};

#[tokio::test]
async fn a_new_result_type_needs_a_numbered_file_and_the_error_says_so() {
    let database = first_release().await;
    let error = migrator(&[TABLES], &[A_RETURNS_TEXT, B])
        .run(&database.pool)
        .await
        .unwrap_err();
    assert!(matches!(error, MigrateError::Function { name: "a", .. }));
    let message = chain(&error);
    assert!(
        message.contains("numbered migration must drop") && message.contains("return type"),
        "{message}"
    );
    assert!(FIRST.run(&database.pool).await.unwrap().is_unchanged());
}

#[tokio::test]
async fn a_new_result_type_with_its_numbered_file_is_applied() {
    const DROP: Migration = Migration {
        version: 2,
        name: "a_returns_text",
        sql: "drop function if exists pgflow.a(int);",
    };
    let to = migrator(&[TABLES, DROP], &[A_RETURNS_TEXT, B]);
    let database = first_release().await;
    let report = upgrade(&database, to).await;
    assert_eq!(report.functions, ["a"]);

    let fresh = blank().await;
    to.run(&fresh.pool).await.unwrap();
    assert_eq!(fresh.dump().await, database.dump().await);
}

#[tokio::test]
async fn a_function_that_somebody_dropped_comes_back() {
    let database = first_release().await;
    database.run("drop function pgflow.b()").await;
    let status = FIRST.status(&database.pool).await.unwrap();
    assert_eq!(status.changed_functions, ["b"]);
    assert_eq!(upgrade(&database, FIRST).await.functions, ["b"]);
}

#[tokio::test]
async fn an_overload_that_somebody_added_is_named_and_left_alone() {
    let database = first_release().await;
    database
        .run("create function pgflow.b(x text) returns int language sql as 'select 1'")
        .await;
    let error = FIRST.run(&database.pool).await.unwrap_err();
    let MigrateError::NotOneFunction { name, found } = &error else {
        panic!("{error:?}")
    };
    assert_eq!(
        (name.as_str(), found.join(" ").as_str()),
        ("b", "pgflow.b() pgflow.b(text)")
    );
    assert_eq!(signatures(&database).await.len(), 3);
}

#[tokio::test]
async fn a_function_that_something_depends_on_is_not_dropped() {
    let database = first_release().await;
    database
        .run("create view public.uses_a as select pgflow.a(1)")
        .await;
    migrator(&[TABLES], &[B]).run(&database.pool).await.unwrap();
    let error = migrator(&[TABLES, NEXT], &[B])
        .run(&database.pool)
        .await
        .unwrap_err();
    assert!(
        matches!(&error, MigrateError::Drop { signature, .. } if signature == "pgflow.a(integer)")
    );
    assert_eq!(signatures(&database).await.len(), 2);
}

#[tokio::test]
async fn functions_of_other_names_are_none_of_our_business() {
    let database = first_release().await;
    database
        .run("create function pgflow.mine() returns int language sql as 'select 1'")
        .await;
    assert!(FIRST.run(&database.pool).await.unwrap().is_unchanged());
}
