//! The reads and calls of hot functions: neither stored history nor unused features of a flow may
//! slow them down.

use serde_json::json;
use sqlx::Connection;
use sqlx::postgres::PgConnection;

use crate::support::flows::{claim, claim_one, complete, fail, shape, start, step};
use crate::support::invariants::assert_invariants;
use crate::support::runs::{claim_all, database_with, fail_for_good, of_step, requeue};

/// The tables that this transaction has read from end to end, and how often.
async fn sequential_scans(session: &mut PgConnection) -> Vec<(String, i64)> {
    sqlx::query_as(
        "select relname::text, seq_scan from pg_stat_xact_user_tables
         where schemaname in ('pgflow', 'pgmq') and seq_scan > 0",
    )
    .fetch_all(session)
    .await
    .expect("statistics can be read")
}

#[tokio::test]
async fn rows_and_messages_are_found_through_indexes() {
    let (db, worker) = database_with(&[
        step("list"),
        step("each").map().deps(&["list"]),
        step("unmet").required(json!({"never": 1})),
        step("fragile").when_exhausted("skip-cascade"),
        step("after").deps(&["unmet", "fragile"]),
        step("last").deps(&["each"]).required(json!({"each": [1]})),
    ])
    .await;
    // The planner likes to scan a table that it knows to be small, and the plan stays when it has
    // grown.
    for _ in 0..20 {
        start(&db.pool, "f", json!({})).await;
    }
    sqlx::query("analyze")
        .execute(&db.pool)
        .await
        .expect("statistics can be taken");

    // A session of its own: the counts are those of all that a session did since it last reported
    // them.
    let mut session = PgConnection::connect(&db.url).await.expect("a session");
    let mut session = session.begin().await.expect("a transaction");
    start(&mut *session, "f", json!({})).await;
    let claimed = claim_all(&mut *session, worker).await;
    let run_id = claimed[0].run_id;
    let of_run: Vec<_> = claimed.into_iter().filter(|t| t.run_id == run_id).collect();
    fail(&mut *session, of_step(&of_run, "fragile"), "again").await;
    complete(&mut *session, of_step(&of_run, "list"), json!([1, 2])).await;
    for task in claim_all(&mut *session, worker).await {
        match task.step_slug.as_str() {
            "each" => complete(&mut *session, &task, json!(1)).await,
            _ => fail_for_good(&mut *session, &task, "no").await,
        };
    }
    let other = claim_one(&mut *session, worker).await;
    complete(&mut *session, &other, json!(1)).await;
    requeue(&mut *session).await;
    assert_eq!(sequential_scans(&mut session).await, []);
    session.commit().await.expect("the work is kept");
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_claim_and_its_completion_read_their_own_tasks_and_not_the_backlog() {
    let (db, worker) = database_with(&[step("each").map()]).await;
    // Statistics from when the queue was short, as they are whenever it fills quickly.
    start(&db.pool, "f", json!([1, 2])).await;
    sqlx::query("analyze")
        .execute(&db.pool)
        .await
        .expect("statistics can be taken");
    start(&db.pool, "f", json!(vec![1; 3000])).await;

    let mut session = db.pool.begin().await.expect("a session");
    let tasks = claim(&mut *session, worker, 10).await;
    assert_eq!(tasks.len(), 10);
    for task in &tasks {
        complete(&mut *session, task, json!(1)).await;
    }
    let read: Vec<(String, i64)> = sqlx::query_as(
        "select relname::text, (coalesce(idx_tup_fetch, 0) + seq_tup_read)::bigint from pg_stat_xact_user_tables
         where schemaname in ('pgflow', 'pgmq') and coalesce(idx_tup_fetch, 0) + seq_tup_read > 1000",
    )
    .fetch_all(&mut *session)
    .await
    .expect("statistics can be read");
    assert_eq!(read, [], "rows read of a table");
    session.commit().await.expect("the work is kept");
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_flow_is_compiled_without_a_look_at_the_runs_of_others() {
    let (db, _) = database_with(&[step("a")]).await;
    start(&db.pool, "f", json!({})).await;
    let mut session = PgConnection::connect(&db.url).await.expect("a session");
    let mut session = session.begin().await.expect("a transaction");
    sqlx::query("select pgflow.ensure_flow_compiled('other', $1)")
        .bind(shape(&[step("a"), step("b").deps(&["a"])]))
        .execute(&mut *session)
        .await
        .expect("compiled");
    let read: i64 = sqlx::query_scalar("select pg_stat_get_xact_numscans('pgflow.runs'::regclass)")
        .fetch_one(&mut *session)
        .await
        .expect("statistics can be read");
    assert_eq!(read, 0);
}

#[tokio::test]
async fn a_flow_without_conditions_and_maps_pays_for_neither() {
    let (db, worker) = database_with(&[step("a"), step("b").deps(&["a"])]).await;
    let mut session = PgConnection::connect(&db.url).await.expect("a session");
    sqlx::query("set track_functions = 'pl'")
        .execute(&mut session)
        .await
        .expect("functions can be counted");
    let mut session = session.begin().await.expect("a transaction");
    start(&mut *session, "f", json!({})).await;
    for _ in 0..2 {
        let task = claim_one(&mut *session, worker).await;
        complete(&mut *session, &task, json!(1)).await;
    }
    let called: Vec<String> = sqlx::query_scalar(
        "select funcname::text from pg_stat_xact_user_functions
         where funcname in ('_advance_runs', '_resolve_conditions', '_complete_taskless_steps', '_skip_steps')",
    )
    .fetch_all(&mut *session)
    .await
    .expect("statistics can be read");
    assert_eq!(called, ["_advance_runs"]);
    session.commit().await.expect("the work is kept");
    assert_invariants(&db.pool).await;
}

/// Waves of maps over nothing: what is written, and how often a function is called, grows with the
/// waves; each wave reads the rows of its own run and no more.
#[tokio::test]
async fn a_long_chain_of_empty_maps_costs_each_step_what_a_short_one_does() {
    for length in [10_i64, 40] {
        let slugs: Vec<String> = (0..length).map(|n| format!("m{n}")).collect();
        let mut steps = vec![step("m0").map()];
        for pair in slugs.windows(2) {
            steps.push(step(&pair[1]).map().deps(&[&pair[0]]));
        }
        let (db, _) = database_with(&steps).await;
        for _ in 0..20 {
            start(&db.pool, "f", json!([])).await;
        }
        let mut session = PgConnection::connect(&db.url).await.expect("a session");
        sqlx::query("set track_functions = 'pl'")
            .execute(&mut session)
            .await
            .expect("functions can be counted");
        let mut session = session.begin().await.expect("a transaction");
        start(&mut *session, "f", json!([])).await;
        let written: Vec<(String, i64)> = sqlx::query_as(
            "select relname::text, n_tup_ins + n_tup_upd from pg_stat_xact_user_tables
             where schemaname in ('pgflow', 'pgmq') and n_tup_ins + n_tup_upd > 0 order by 1",
        )
        .fetch_all(&mut *session)
        .await
        .expect("statistics can be read");
        assert_eq!(
            written,
            [
                // Inserted, counted down by each step, the last of which completes it.
                ("runs".to_owned(), length + 1),
                // Inserted, counted down by its source, completed; the first one has no source.
                ("step_states".to_owned(), 3 * length - 1),
            ]
        );
        let calls: Vec<i64> = sqlx::query_scalar(
            "select calls from pg_stat_xact_user_functions where funcname in ('_complete_taskless_steps', '_settle_steps')",
        )
        .fetch_all(&mut *session)
        .await
        .expect("statistics can be read");
        assert_eq!(calls, [length, length]);
        let read: i64 = sqlx::query_scalar(
            "select max(coalesce(idx_tup_fetch, 0) + seq_tup_read)::bigint from pg_stat_xact_user_tables
             where schemaname in ('pgflow', 'pgmq')",
        )
        .fetch_one(&mut *session)
        .await
        .expect("statistics can be read");
        assert!(
            read <= 4 * length * length,
            "{read} rows of one table were read for {length} waves over {length} steps"
        );
        session.commit().await.expect("the work is kept");
        assert_invariants(&db.pool).await;
    }
}

/// Delayed starts and retries stand before what came later.
#[tokio::test]
async fn a_claim_reads_no_message_that_is_hidden() {
    let (db, worker) = database_with(&[step("each").map()]).await;
    start(&db.pool, "f", json!(vec![1; 3000])).await;
    sqlx::query("update pgmq.q_f set vt = now() + interval '1 hour'")
        .execute(&db.pool)
        .await
        .expect("messages can be hidden");
    start(&db.pool, "f", json!([1, 2])).await;
    for statistics in ["select 1", "analyze", "vacuum analyze pgmq.q_f"] {
        sqlx::query(statistics)
            .execute(&db.pool)
            .await
            .expect("statistics can be taken");
        let mut session = PgConnection::connect(&db.url).await.expect("a session");
        let mut session = session.begin().await.expect("a transaction");
        assert_eq!(claim(&mut *session, worker, 10).await.len(), 2);
        assert_eq!(claim(&mut *session, worker, 10).await.len(), 0);
        let read: i64 = sqlx::query_scalar(
            "select (coalesce(idx_tup_fetch, 0) + seq_tup_read)::bigint from pg_stat_xact_user_tables where relname = 'q_f'",
        )
        .fetch_one(&mut *session)
        .await
        .expect("statistics can be read");
        assert!(read < 100, "{read} messages were read, after {statistics}");
        session.rollback().await.expect("undone");
    }
}
