//! Every index is there for something: a query that it serves, or a rule that it keeps.

use std::collections::BTreeMap;

use pgflow_runtime::inspect::{self, RunFilter};
use serde_json::json;
use sqlx::{Connection, PgConnection, PgTransaction};

use crate::support::flows::{claim, complete, start, step};
use crate::support::invariants::assert_invariants;
use crate::support::rows::raised;
use crate::support::runs::{age, database_with, requeue};

/// The purpose of an index.
#[derive(Debug, Clone, Copy)]
enum For {
    /// A statement that searches it.
    Query(&'static str),
    /// A call that is more than a statement.
    Call(Call),
    /// A statement that it refuses: a rule, whoever reads the table.
    Rule(&'static str),
}

#[derive(Debug, Clone, Copy)]
enum Call {
    Claim,
    Complete,
    Recover,
    ListRuns,
}

/// Each index, with what it is for.
const INDEXES: [(&str, For); 27] = [
    ("claims_pkey", For::Call(Call::Recover)),
    ("deps_pkey", For::Call(Call::Complete)),
    (
        "flow_deletions_pkey",
        For::Query("select pgflow.start_flow('f', '[]')"),
    ),
    (
        "flows_pkey",
        For::Query("select pgflow.start_flow('f', '[]')"),
    ),
    ("idx_claims_look_at", For::Call(Call::Recover)),
    ("idx_deps_by_flow_step", For::Call(Call::Complete)),
    // Queue names ignore case.
    (
        "idx_flows_slug_ignoring_case",
        For::Rule("insert into pgflow.flows (flow_slug) values ('F')"),
    ),
    (
        "idx_runs_ended_at",
        For::Query("select pgflow.prune_data_older_than('1 day')"),
    ),
    // `pgflow runs`
    ("idx_runs_started_at", For::Call(Call::ListRuns)),
    ("idx_step_tasks_message", For::Call(Call::Claim)),
    (
        "idx_steps_runs_on",
        For::Rule(
            "insert into pgflow.steps (flow_slug, step_slug, step_index, queue_name, runs_on)
             values ('f', 'tidy', 98, 'f', 'end'), ('f', 'tidy_too', 99, 'f', 'end')",
        ),
    ),
    (
        "idx_steps_slug_ignoring_case",
        For::Rule(
            "insert into pgflow.steps (flow_slug, step_slug, step_index, queue_name) values ('f', 'LIST', 99, 'f')",
        ),
    ),
    // Which workers of a function ran last, as people ask when one is disabled.
    (
        "idx_workers_function_name",
        For::Query(
            "select worker_id from pgflow.workers where function_name = 'test-worker' order by started_at desc limit 10",
        ),
    ),
    (
        "idx_workers_not_stopped",
        For::Query("select pgflow.ensure_workers()"),
    ),
    (
        "installation_pkey",
        For::Query("select pgflow.start_flow('f', '[]')"),
    ),
    (
        "option_notices_pkey",
        For::Query("select pgflow.ensure_flow_compiled('f', pgflow._flow_shape('f'))"),
    ),
    ("overdue_attempts_pkey", For::Call(Call::Recover)),
    ("runs_pkey", For::Call(Call::Claim)),
    (
        "schema_functions_pkey",
        For::Rule(
            "insert into pgflow.schema_functions select * from pgflow.schema_functions limit 1",
        ),
    ),
    // The first question of a worker.
    (
        "schema_migrations_pkey",
        For::Query("select coalesce(max(version), 0) from pgflow.schema_migrations"),
    ),
    ("step_states_pkey", For::Call(Call::Claim)),
    ("step_tasks_pkey", For::Call(Call::Complete)),
    (
        "steps_flow_slug_step_index_key",
        For::Rule("update pgflow.steps set step_index = 0"),
    ),
    (
        "steps_pkey",
        For::Query("select pgflow.start_flow('f', '[]')"),
    ),
    (
        "wakeups_pkey",
        For::Query("select pgflow.start_flow('f', '[1]')"),
    ),
    (
        "worker_functions_pkey",
        For::Query("select pgflow.enable_worker_function('test-worker')"),
    ),
    ("workers_pkey", For::Call(Call::Claim)),
];

/// Returns the number of times that this transaction has searched an index.
async fn searches(session: &mut PgConnection, index: &str) -> i64 {
    sqlx::query_scalar("select pg_stat_get_xact_numscans(('pgflow.' || $1)::regclass)")
        .bind(index)
        .fetch_one(session)
        .await
        .expect("searches are counted")
}

impl Call {
    async fn make(self, tx: &mut PgTransaction<'_>) {
        let worker: uuid::Uuid = sqlx::query_scalar("select worker_id from pgflow.workers")
            .fetch_one(&mut **tx)
            .await
            .expect("there is one worker");
        match self {
            Self::Claim => assert_eq!(claim(&mut **tx, worker, 1).await.len(), 1),
            Self::Complete => {
                let task = claim(&mut **tx, worker, 1).await.remove(0);
                complete(&mut **tx, &task, json!([1])).await;
            }
            Self::Recover => {
                requeue(&mut **tx).await;
            }
            Self::ListRuns => {
                let newest = RunFilter {
                    status: None,
                    flow_slug: None,
                    limit: 10,
                };
                let runs = inspect::runs(&mut **tx, &newest).await;
                assert_eq!(runs.expect("runs can be listed").len(), 10);
            }
        }
    }
}

impl For {
    /// Returns the reason why the index does not serve this purpose, if there is one.
    async fn fault(self, session: &mut PgConnection, index: &str) -> Option<String> {
        let mut transaction = session.begin().await.expect("a transaction");
        let before = searches(&mut transaction, index).await;
        match self {
            Self::Call(call) => call.make(&mut transaction).await,
            Self::Query(query) => {
                sqlx::query(query)
                    .fetch_all(&mut *transaction)
                    .await
                    .unwrap_or_else(|error| panic!("{query}: {error}"));
            }
            Self::Rule(statement) => {
                let refused = sqlx::query(statement).execute(&mut *transaction).await;
                let expected =
                    format!("23505: duplicate key value violates unique constraint \"{index}\"");
                let error = raised(refused);
                return (error != expected).then_some(error);
            }
        }
        let searches = searches(&mut transaction, index).await - before;
        (searches == 0).then(|| format!("{self:?} does not search it"))
    }
}

#[tokio::test]
async fn every_index_is_for_something() {
    let (db, worker) = database_with(&[
        step("list"),
        step("each").map().deps(&["list"]),
        step("last").deps(&["list", "each"]),
    ])
    .await;
    for _ in 0..300 {
        start(&db.pool, "f", json!([])).await;
    }
    let stalled = claim(&db.pool, worker, 1).await.remove(0);
    age(&db.pool, stalled.run_id, "list", 3600).await;
    sqlx::query("update pgflow.worker_functions set start_mode = 'http'")
        .execute(&db.pool)
        .await
        .expect("the function can be changed");
    sqlx::query("analyze")
        .execute(&db.pool)
        .await
        .expect("statistics can be taken");
    let there: Vec<String> = sqlx::query_scalar(
        "select indexname::text from pg_indexes where schemaname = 'pgflow' order by indexname collate \"C\"",
    )
    .fetch_all(&db.pool)
    .await
    .expect("indexes can be listed");
    assert_eq!(
        there,
        INDEXES.map(|(name, _)| name),
        "each index needs an entry that says what it is for"
    );

    let mut session = PgConnection::connect(&db.url).await.expect("a session");
    // A few rows would be read from end to end, whatever index there is.
    sqlx::query("set enable_seqscan = off")
        .execute(&mut session)
        .await
        .expect("a planner setting");
    let mut faults = BTreeMap::new();
    for (index, purpose) in INDEXES {
        if let Some(fault) = purpose.fault(&mut session, index).await {
            faults.insert(index, fault);
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
    assert_invariants(&db.pool).await;
}
