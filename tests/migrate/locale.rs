//! A database whose language has small letters of its own: names are those of ASCII anyway,
//! as the workers derive them.

use pgflow_definition::queue::{default_queue, step_queue};
use pgflow_migrations::FUNCTIONS;
use pgflow_runtime::migrate;
use serde_json::json;
use sqlx::{AssertSqlSafe, PgPool};
use uuid::Uuid;

use super::{Blank, blank};
use crate::support::flows::{
    FUNCTION, define, define_with_step_queues, drain, start, step, step_worker,
};
use crate::support::rows::{raised, run};

/// A Turkish database, where `lower('I')` is a dotless i; `None` where the server can't have one.
async fn turkish(database: &Blank) -> Option<PgPool> {
    let is_possible = "select (current_setting('server_version_num')::int >= 150000
        and exists (select from pg_collation where collname = 'tr-x-icu'))::int::bigint";
    if database.count(is_possible).await == 0 {
        eprintln!("not tested: this server has no databases of other languages");
        return None;
    }
    let name = format!("{}_turkish", database.name);
    database
        .run(format!(
            "create database {name} template template0 encoding 'UTF8' locale 'C' locale_provider icu icu_locale 'tr'"
        ))
        .await;
    let options = database.options.clone().database(&name);
    let pool = PgPool::connect_with(options).await.unwrap();
    let lower: String = sqlx::query_scalar("select lower('I')")
        .fetch_one(&pool)
        .await
        .unwrap();
    assert_eq!(lower, "ı");
    Some(pool)
}

/// A worker of flow `INVOICES`, registered for the queue that its code derives.
async fn plain_worker(pool: &PgPool) -> Uuid {
    let id = Uuid::now_v7();
    sqlx::query(
        "with tracked as (select pgflow.track_worker_function($1))
         select pgflow.register_worker($2, $1, 'INVOICES', null, $3, '{}') from tracked",
    )
    .bind(FUNCTION)
    .bind(id)
    .bind(default_queue("INVOICES"))
    .execute(pool)
    .await
    .unwrap();
    id
}

#[tokio::test]
async fn queue_names_do_not_depend_on_the_language_of_the_database() {
    let database = blank().await;
    let Some(pool) = turkish(&database).await else {
        return;
    };
    migrate::migrate(&pool).await.unwrap();
    define(&pool, "INVOICES", &[step("IN")]).await;
    define_with_step_queues(&pool, "ITEMS", &[step("IN"), step("OUT").deps(&["IN"])]).await;
    let queues: Vec<String> = sqlx::query_scalar(
        "select queue_name::text from pgmq.meta order by queue_name collate \"C\"",
    )
    .fetch_all(&pool)
    .await
    .unwrap();
    let expected = [
        default_queue("INVOICES"),
        step_queue("ITEMS", "IN", 0),
        step_queue("ITEMS", "OUT", 1),
    ];
    assert_eq!(queues, expected);
    let twin = sqlx::query("select pgflow.create_flow('items')")
        .execute(&pool)
        .await;
    assert_eq!(
        raised(twin),
        "PF006: flow \"items\" differs from flow \"ITEMS\" only in case"
    );

    let plain = start(&pool, "INVOICES", json!({})).await;
    let stepped = start(&pool, "ITEMS", json!({})).await;
    for worker in [
        plain_worker(&pool).await,
        step_worker(&pool, "ITEMS", "IN").await,
        step_worker(&pool, "ITEMS", "OUT").await,
    ] {
        assert_eq!(drain(&pool, worker, |_| json!(1)).await, 1);
    }
    for id in [plain, stepped] {
        assert_eq!(run(&pool, id).await.status, "completed");
    }
    for flow in ["INVOICES", "ITEMS"] {
        sqlx::query("select pgflow.delete_flow_and_data($1)")
            .bind(flow)
            .execute(&pool)
            .await
            .unwrap();
    }
    let left: i64 = sqlx::query_scalar("select count(*) from pgmq.meta")
        .fetch_one(&pool)
        .await
        .unwrap();
    assert_eq!(left, 0);
    let name: String = sqlx::query_scalar("select current_database()::text")
        .fetch_one(&pool)
        .await
        .unwrap();
    pool.close().await;
    sqlx::query(AssertSqlSafe(format!("drop database {name}")))
        .execute(&database.pool)
        .await
        .unwrap();
}

#[test]
fn no_function_leaves_small_letters_to_the_database() {
    let mut found = 0;
    for function in FUNCTIONS {
        for line in function.sql.lines() {
            let code = line.split("--").next().unwrap_or_default();
            for (at, call) in code.match_indices("lower(") {
                if code[..at].ends_with("array_") {
                    continue;
                }
                let mut depth = 1;
                let arguments = code[at + call.len()..]
                    .split_inclusive(['(', ')'])
                    .take_while(|part| {
                        let goes_on = depth > 0;
                        depth += if part.ends_with('(') { 1 } else { -1 };
                        goes_on
                    });
                let arguments: String = arguments.collect();
                assert!(
                    arguments.ends_with(" collate \"C\")"),
                    "{}: {line}",
                    function.name
                );
                found += 1;
            }
        }
    }
    assert!(found > 15, "{found}");
}

/// Its texts can hold what its encoding has, and no more.
#[tokio::test]
async fn a_database_of_another_encoding_is_migrated_and_runs_flows() {
    let database = blank().await;
    let name = format!("{}_latin1", database.name);
    database
        .run(format!(
            "create database {name} template template0 encoding 'LATIN1' locale 'C'"
        ))
        .await;
    let options = database.options.clone().database(&name);
    let pool = PgPool::connect_with(options).await.unwrap();
    migrate::migrate(&pool).await.unwrap();
    assert!(migrate::migrate(&pool).await.unwrap().is_unchanged());
    define(&pool, "INVOICES", &[step("a")]).await;
    let id = start(&pool, "INVOICES", json!("Größe")).await;
    let worker = plain_worker(&pool).await;
    assert_eq!(drain(&pool, worker, |task| task.input.clone()).await, 1);
    assert_eq!(run(&pool, id).await.output, Some(json!({"a": "Größe"})));
    pool.close().await;
    database.run(format!("drop database {name}")).await;
}
