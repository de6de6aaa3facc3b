//! The constraints of the tables, for every writer: rows that the functions never create must not
//! come from elsewhere either.

mod ended_rows;

use serde_json::json;
use sqlx::AssertSqlSafe;
use sqlx::postgres::{PgDatabaseError, PgPool};

use crate::support::TestDb;
use crate::support::flows::{claim_one, define, start, step, worker};
use crate::support::invariants::assert_invariants;

/// The constraint, or unique index, that refuses a statement.
async fn refused_by(pool: &PgPool, statement: &str) -> String {
    let result = sqlx::query(AssertSqlSafe(statement)).execute(pool).await;
    let error = result.expect_err(statement);
    let error = error.as_database_error().expect("Postgres refused it");
    let error = error.downcast_ref::<PgDatabaseError>();
    error
        .constraint()
        .unwrap_or_else(|| panic!("{statement}: {error}"))
        .to_owned()
}

/// A run with a claimed single step, a waiting map of two and a step after both.
async fn database() -> TestDb {
    let db = TestDb::new().await;
    let steps = [
        step("a").start_delay(0),
        step("m").map().start_delay(60),
        step("z").deps(&["a", "m"]),
    ];
    define(&db.pool, "orders", &steps).await;
    start(&db.pool, "orders", json!([1, 2])).await;
    let worker = worker(&db.pool, "orders").await;
    assert_eq!(claim_one(&db.pool, worker).await.step_slug, "a");
    db
}

async fn assert_refused(cases: &[(&str, &str)]) {
    let db = database().await;
    for (statement, constraint) in cases {
        assert_eq!(
            &refused_by(&db.pool, statement).await,
            constraint,
            "{statement}"
        );
    }
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_definition_that_no_call_would_store_is_refused() {
    assert_refused(&[
        ("insert into pgflow.flows (flow_slug) values ('no-dash')", "slug_is_valid"),
        ("insert into pgflow.flows (flow_slug) values ('ORDERS')", "idx_flows_slug_ignoring_case"),
        ("update pgflow.flows set opt_max_attempts = 0", "opt_max_attempts_is_positive"),
        ("update pgflow.flows set opt_base_delay = -1", "opt_base_delay_is_nonnegative"),
        ("update pgflow.flows set opt_timeout = 0", "opt_timeout_is_positive"),
        (
            "insert into pgflow.steps (flow_slug, step_slug, step_index, queue_name) values ('orders', 'b', 2, 'orders')",
            "steps_flow_slug_step_index_key",
        ),
        (
            "insert into pgflow.steps (flow_slug, step_slug, step_index, queue_name) values ('orders', 'M', 3, 'orders')",
            "idx_steps_slug_ignoring_case",
        ),
        (
            "insert into pgflow.steps (flow_slug, step_slug, step_index, queue_name) values ('unknown', 'a', 0, 'orders')",
            "steps_flow_slug_fkey",
        ),
        ("update pgflow.steps set step_type = 'loop'", "steps_step_type_check"),
        ("update pgflow.steps set step_type = 'map' where step_slug = 'z'", "map_has_at_most_one_dependency"),
        ("update pgflow.steps set deps_count = 2 where step_slug = 'm'", "map_has_at_most_one_dependency"),
        ("update pgflow.steps set required_input_pattern = '[1]' where step_slug = 'z'", "required_input_pattern_is_object"),
        ("update pgflow.steps set forbidden_input_pattern = '\"x\"' where step_slug = 'z'", "forbidden_input_pattern_is_object"),
        ("update pgflow.steps set required_input_pattern = '{}' where step_slug = 'm'", "root_map_has_no_condition"),
        ("update pgflow.steps set when_unmet = 'retry'", "when_unmet_is_valid"),
        ("update pgflow.steps set when_exhausted = 'retry'", "when_exhausted_is_valid"),
        ("update pgflow.steps set opt_start_delay = -1", "opt_start_delay_is_nonnegative"),
        ("update pgflow.steps set queue_name = 'Orders'", "queue_name_is_canonical"),
        ("update pgflow.steps set queue_name = repeat('q', 48)", "queue_name_is_canonical"),
        ("insert into pgflow.deps (flow_slug, dep_slug, step_slug) values ('orders', 'a', 'a')", "deps_check"),
        ("insert into pgflow.deps (flow_slug, dep_slug, step_slug) values ('orders', 'a', 'z')", "deps_pkey"),
        (
            "insert into pgflow.deps (flow_slug, dep_slug, step_slug) values ('orders', 'unknown', 'a')",
            "deps_flow_slug_dep_slug_fkey",
        ),
    ])
    .await;
}

#[tokio::test]
async fn counters_below_zero_are_refused() {
    assert_refused(&[
        (
            "update pgflow.runs set remaining_steps = -1",
            "remaining_steps_is_nonnegative",
        ),
        (
            "update pgflow.step_states set remaining_deps = -1",
            "remaining_deps_is_nonnegative",
        ),
        (
            "update pgflow.step_states set remaining_tasks = -1 where step_slug = 'a'",
            "remaining_tasks_is_nonnegative",
        ),
        (
            "update pgflow.step_states set initial_tasks = -1 where step_slug = 'a'",
            "initial_tasks_is_nonnegative",
        ),
        (
            "update pgflow.step_tasks set attempts_count = -1",
            "attempts_count_is_nonnegative",
        ),
        (
            "update pgflow.step_tasks set requeued_count = -1",
            "requeued_count_is_nonnegative",
        ),
        (
            "update pgflow.step_tasks set task_index = -1 where step_slug = 'a'",
            "task_index_is_nonnegative",
        ),
    ])
    .await;
}

#[tokio::test]
async fn a_message_stands_for_one_task() {
    assert_refused(&[(
        "update pgflow.step_tasks t set message_id = a.message_id from pgflow.step_tasks a
         where a.step_slug = 'a' and t.step_slug = 'm' and t.task_index = 0",
        "idx_step_tasks_message",
    )])
    .await;
}

#[tokio::test]
async fn a_status_that_contradicts_its_row_is_refused() {
    assert_refused(&[
        ("update pgflow.runs set status = 'paused'", "status_is_valid"),
        ("update pgflow.runs set status = 'failed'", "status_matches_timestamps"),
        ("update pgflow.runs set failed_at = now()", "status_matches_timestamps"),
        ("update pgflow.step_states set status = 'paused'", "status_is_valid"),
        (
            "update pgflow.step_states set status = 'completed', completed_at = now() + interval '1 hour' where step_slug = 'a'",
            "status_and_remaining_tasks_match",
        ),
        (
            "update pgflow.step_states set output = '1' where step_slug = 'a'",
            "output_only_for_completed",
        ),
        (
            "update pgflow.step_states set status = 'skipped', skipped_at = now() + interval '1 hour', remaining_tasks = null where step_slug = 'a'",
            "skip_reason_matches_status",
        ),
        (
            "update pgflow.step_states set status = 'skipped', skipped_at = now() + interval '1 hour', remaining_tasks = null, skip_reason = 'because'
             where step_slug = 'a'",
            "skip_reason_is_valid",
        ),
        (
            "update pgflow.step_states set remaining_tasks = 1 where step_slug = 'z'",
            "remaining_tasks_state_consistency",
        ),
        ("update pgflow.step_tasks set status = 'paused'", "status_is_valid"),
        ("update pgflow.step_tasks set status = 'started' where step_slug = 'm'", "started_needs_started_at"),
        ("update pgflow.step_tasks set status = 'completed' where step_slug = 'a'", "status_matches_timestamps"),
        ("update pgflow.step_tasks set output = '1' where step_slug = 'a'", "output_valid_only_for_completed"),
        (
            "update pgflow.step_tasks set started_at = queued_at - interval '1 hour' where step_slug = 'a'",
            "started_at_is_after_queued_at",
        ),
        (
            "insert into pgflow.claims (worker_id, claimed_at, look_at, run_ids, step_slugs, task_indexes)
             values (gen_random_uuid(), now(), now(), '{}', '{}', '{}')",
            "claim_names_tasks",
        ),
        (
            "insert into pgflow.claims (worker_id, claimed_at, look_at, run_ids, step_slugs, task_indexes)
             values (gen_random_uuid(), now(), now(), array[gen_random_uuid()], '{a}', '{0, 1}')",
            "claim_names_tasks",
        ),
    ])
    .await;
}
