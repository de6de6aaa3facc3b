//! A production database never changes a stored definition, and nothing that a worker can say or do
//! makes it one that does.

use pgflow_migrations::{FUNCTIONS, MIGRATIONS};
use serde_json::json;
use sqlx::postgres::PgPool;
use sqlx::{AssertSqlSafe, Connection, PgConnection};

use super::{ensure_in, run_sql};
use crate::sql::stored::unchanged;
use crate::support::TestDb;
use crate::support::flows::{Step, claim_one, start, step, step_worker, worker};
use crate::support::invariants::assert_invariants;
use crate::support::rows::raised;

fn one() -> Vec<Step> {
    vec![step("a")]
}

#[tokio::test]
async fn a_mismatch_changes_nothing_whoever_serves_the_flow() {
    for mode in ["flow", "step"] {
        let db = TestDb::new().await;
        ensure_in(&db.pool, mode, &one()).await.expect("compiled");
        for _ in 0..2 {
            start(&db.pool, "orders", json!({})).await;
        }
        let registered = async || match mode {
            "flow" => worker(&db.pool, "orders").await,
            _ => step_worker(&db.pool, "orders", "a").await,
        };
        let (alive, dead) = (registered().await, registered().await);
        let task = claim_one(&db.pool, alive).await;
        run_sql(
            &db.pool,
            format!("update pgflow.workers set last_heartbeat_at = '2000-01-01' where worker_id = '{dead}'"),
        )
        .await;
        for (asked, steps, kind) in [
            ("flow", vec![step("a"), step("b")], "shape"),
            ("step", vec![step("a"), step("b")], "shape"),
            (
                if mode == "flow" { "step" } else { "flow" },
                one(),
                "routing",
            ),
        ] {
            let answer = unchanged(&db.pool, ensure_in(&db.pool, asked, &steps)).await;
            let answer = answer.expect("an answer");
            assert_eq!(
                (&answer["status"], &answer["mismatch_kind"]),
                (&json!("mismatch"), &json!(kind))
            );
            assert_eq!(answer["workers"], json!([]));
        }
        crate::support::flows::complete(&db.pool, &task, json!(1)).await;
        claim_one(&db.pool, alive).await;
        assert_invariants(&db.pool).await;
    }
}

#[tokio::test]
async fn the_compiler_has_its_four_arguments_and_no_function_has_one_that_permits_more() {
    let db = TestDb::new().await;
    let compilers: Vec<String> = sqlx::query_scalar(
        "select pg_get_function_arguments(oid) from pg_proc where proname = 'ensure_flow_compiled'",
    )
    .fetch_all(&db.pool)
    .await
    .expect("the catalog can be read");
    assert_eq!(
        compilers,
        [
            "flow_slug text, shape jsonb, queue_mode text DEFAULT 'flow'::text, route_map jsonb DEFAULT NULL::jsonb"
        ]
    );
    let arguments: Vec<(String, String, String)> = sqlx::query_as(
        "select p.proname::text, a.name, format_type(a.type, null)
         from pg_proc p
         cross join lateral unnest(p.proargnames, coalesce(p.proallargtypes, p.proargtypes::oid[]), p.proargmodes) a (name, type, mode)
         where p.pronamespace = 'pgflow'::regnamespace and coalesce(a.mode, 'i') in ('i', 'b', 'v')
         order by p.proname collate \"C\", a.name collate \"C\"",
    )
    .fetch_all(&db.pool)
    .await
    .expect("the catalog can be read");
    let switches: Vec<String> = arguments
        .iter()
        .filter(|(.., kind)| kind == "boolean")
        .map(|(function, name, _)| format!("{function}({name})"))
        .collect();
    assert_eq!(
        switches,
        [
            "_assert_queues(owned)",
            "_lock_flow(alone)",
            "_requeue_tasks(stalled)",
            "_skip_steps(cascade)",
            "_start_claimed(counted)",
            "_take_messages(counted)",
            "fail_task(retryable)",
            "recover_tasks(trust_silence)"
        ]
    );
    for word in [
        "allow", "force", "loss", "destr", "recompil", "confirm", "override", "local",
    ] {
        let found = arguments.iter().find(|(_, name, _)| name.contains(word));
        assert_eq!(found, None, "{word}");
    }
}

/// The functions whose text names one of these words, besides their own file's comments.
fn functions_that_name(words: &[&str]) -> Vec<&'static str> {
    let mut found: Vec<&str> = FUNCTIONS
        .iter()
        .filter(|function| {
            let code = function
                .sql
                .lines()
                .filter(|line| !line.trim_start().starts_with("--"));
            let code: String = code.collect::<Vec<_>>().join("\n");
            let body = code
                .split_once("as $$")
                .map_or(code.as_str(), |(_, body)| body);
            words.iter().any(|word| body.contains(word))
        })
        .map(|function| function.name)
        .collect();
    found.sort_unstable();
    found
}

#[test]
fn only_the_installation_row_decides_and_only_the_compiler_asks_it() {
    assert_eq!(
        functions_that_name(&["environment"]),
        ["ensure_flow_compiled", "set_environment"]
    );
    assert_eq!(
        functions_that_name(&["delete_flow_and_data", "_drain_flow("]),
        [
            "delete_flow_and_data",
            "delete_flow_batch",
            "ensure_flow_compiled"
        ]
    );
    assert_eq!(
        functions_that_name(&["drop_queue"]),
        ["delete_flow_and_data"]
    );
    assert_eq!(
        functions_that_name(&["_define_flow("]),
        ["ensure_flow_compiled"]
    );
}

#[test]
fn no_sql_reads_a_setting_of_the_session() {
    let files = MIGRATIONS.iter().map(|file| (file.name, file.sql));
    let functions = FUNCTIONS
        .iter()
        .map(|function| (function.name, function.sql));
    for (name, sql) in files.chain(functions) {
        // The transaction's own, and two that a worker sets for its own claims; none that concerns
        // definitions.
        let sql = [
            "current_setting('transaction_isolation')",
            "current_setting('pgflow.careful_claims', true)",
            "current_setting('pgflow_worker.flow_input_once', true)",
        ]
        .iter()
        .fold(sql.to_lowercase(), |sql, known| sql.replace(known, ""));
        for word in [
            "current_setting",
            "set_config",
            "pg_settings",
            "application_name",
            "pg_read_file",
            "pg_stat_activity",
        ] {
            assert!(!sql.contains(word), "{name} uses {word}");
        }
    }
}

#[tokio::test]
async fn no_setting_of_the_session_makes_production_local() {
    let db = TestDb::new().await;
    ensure_in(&db.pool, "step", &one()).await.expect("compiled");
    let mut session = PgConnection::connect(&db.url).await.expect("a session");
    for setting in [
        "set pgflow.environment = 'local'",
        "set pgflow.allow_data_loss = 'on'",
        "set app.environment = 'local'",
        "set application_name = 'pgflow dev'",
        "set session_replication_role = 'replica'",
        "set search_path = pg_temp, pgflow",
        // In the way of a name without its schema.
        "create temp table installation as select true as singleton, 'local' as environment",
        "create function pg_temp.set_environment(text) returns text language sql as $$ select 'local' $$",
    ] {
        sqlx::query(setting)
            .execute(&mut session)
            .await
            .expect(setting);
    }
    let two = [step("a"), step("b")];
    let answer = unchanged(&db.pool, ensure_in(&mut session, "step", &two)).await;
    assert_eq!(answer.expect("an answer")["status"], "mismatch");
}

/// A session of a role that may call every function of pgflow and read every table: more than a
/// worker needs.
async fn worker_session(db: &TestDb) -> PgConnection {
    let role = format!("{}_worker", db.name);
    let mut session = PgConnection::connect(&db.url).await.expect("a session");
    let rights = format!(
        "create role {role};
         grant usage on schema pgflow to {role};
         grant select on all tables in schema pgflow to {role};
         grant execute on all functions in schema pgflow to {role};
         set session authorization {role}"
    );
    sqlx::raw_sql(AssertSqlSafe(rights))
        .execute(&mut session)
        .await
        .expect("the role of a worker");
    session
}

async fn in_local(pool: &PgPool) -> bool {
    sqlx::query_scalar("select environment = 'local' from pgflow.installation")
        .fetch_one(pool)
        .await
        .expect("one installation")
}

#[tokio::test]
async fn a_workers_role_can_not_make_production_local_nor_delete_by_another_way() {
    let db = TestDb::new().await;
    ensure_in(&db.pool, "step", &one()).await.expect("compiled");
    start(&db.pool, "orders", json!({})).await;
    let mut session = worker_session(&db).await;
    for (call, denied) in [
        (
            "update pgflow.installation set environment = 'local'",
            "table installation",
        ),
        (
            "insert into pgflow.installation (environment) values ('local')",
            "table installation",
        ),
        (
            "select pgflow.set_environment('local')",
            "table installation",
        ),
        (
            "alter table pgflow.installation add column x int",
            "table installation",
        ),
        (
            "create or replace function pgflow.x() returns int language sql return 1",
            "schema pgflow",
        ),
        (
            "select pgflow.delete_flow_and_data('orders')",
            "table workers",
        ),
        ("select pgflow._drain_flow('orders')", "table workers"),
        ("delete from pgflow.steps", "table steps"),
        ("update pgflow.flows set queue_mode = 'flow'", "table flows"),
        ("select pgmq.drop_queue('orders__a')", "schema pgmq"),
    ] {
        let ran = unchanged(&db.pool, sqlx::query(call).execute(&mut session)).await;
        let refusal = raised(ran);
        assert!(
            refusal.starts_with("42501: ") && refusal.ends_with(denied),
            "{call}: {refusal}"
        );
    }
    let two = [step("a"), step("b")];
    let answer = unchanged(&db.pool, ensure_in(&mut session, "step", &two)).await;
    assert_eq!(answer.expect("an answer")["status"], "mismatch");
    assert!(!in_local(&db.pool).await);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_workers_role_compiles_verifies_and_in_a_local_database_recompiles() {
    let db = TestDb::new().await;
    let mut session = worker_session(&db).await;
    for status in ["compiled", "verified"] {
        let answer = ensure_in(&mut session, "step", &one()).await;
        assert_eq!(answer.expect("an answer")["status"], status);
    }
    run_sql(&db.pool, "select pgflow.set_environment('local')").await;
    let answer = ensure_in(&mut session, "flow", &one()).await;
    assert_eq!(answer.expect("an answer")["status"], "recompiled");
    assert_eq!(super::queues(&db.pool).await, ["orders"]);
}
