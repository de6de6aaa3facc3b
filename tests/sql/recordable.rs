//! Whatever is stored, some end is recorded: for the run that it is about, with its reason, and for
//! no other.

use serde_json::{Value, json};
use sqlx::postgres::PgPool;
use sqlx::{AssertSqlSafe, PgConnection};
use uuid::Uuid;

use crate::support::TestDb;
use crate::support::events::{Events, set_event_level};
use crate::support::flows::{
    claim, claim_one, complete, define, drain, fail, raw_claim, start, step,
};
use crate::support::invariants::assert_invariants;
use crate::support::rows::{raised, run, step_state, task};
use crate::support::runs::{Item, claim_all, complete_batch, database_with, of_step, outline};

/// Half of what JSON can hold.
const LARGE: &str = "to_jsonb(repeat('x', 134217728))";

/// 2 KB where they are stored, 1 GB where they are printed.
const EXPLOSIVE: &str = "('[' || repeat('1e131071,', 8299) || '1]')::jsonb";

async fn execute(pool: &PgPool, sql: impl Into<String>) -> sqlx::Result<()> {
    sqlx::raw_sql(AssertSqlSafe(sql.into()))
        .execute(pool)
        .await?;
    Ok(())
}

async fn complete_large(pool: &PgPool, run_id: Uuid, step: &str, index: i32) {
    let call = format!("select from pgflow.complete_task('{run_id}', '{step}', {index}, {LARGE})");
    execute(pool, call).await.expect("completed");
}

async fn make_large(pool: &PgPool, step: &str) {
    let change = format!(
        "update pgflow.step_states set output = {LARGE} where step_slug = '{step}' and status = 'completed'"
    );
    execute(pool, change).await.expect("an output can be large");
}

const TOO_LARGE: &str = "the outputs of the run's last steps (\"a\", \"b\") are together larger than a JSON value can be (256 MB)";

#[tokio::test]
async fn a_run_whose_output_would_be_too_large_fails_when_its_last_step_completes() {
    let (db, worker) = database_with(&[step("a"), step("b")]).await;
    let mut events = Events::at_level(&db.pool, "runs").await;
    let run_id = start(&db.pool, "f", json!({})).await;
    let other = start(&db.pool, "f", json!({})).await;
    let tasks = claim(&db.pool, worker, 2).await;
    complete(&db.pool, of_step(&tasks, "a"), json!(1)).await;
    make_large(&db.pool, "a").await;
    complete_large(&db.pool, run_id, "b", 0).await;

    let ended = run(&db.pool, run_id).await;
    assert_eq!(ended.status, "failed");
    let reason = format!("the step's output can't be stored: {TOO_LARGE}");
    assert_eq!(ended.error_message, Some(reason));
    assert_eq!(step_state(&db.pool, run_id, "b").await.status, "failed");
    let types = events.types(&db.pool).await;
    assert!(types.ends_with("run:failed"), "{types}");
    drain(&db.pool, worker, |_| json!(1)).await;
    assert_eq!(run(&db.pool, other).await.status, "completed");
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_run_whose_output_would_be_too_large_fails_when_its_last_step_is_skipped() {
    let last = step("last")
        .deps(&["gate"])
        .max_attempts(1)
        .when_exhausted("skip");
    let (db, worker) = database_with(&[step("a"), step("b"), step("gate"), last]).await;
    let run_id = start(&db.pool, "f", json!({})).await;
    for task in claim_all(&db.pool, worker).await {
        complete(&db.pool, &task, json!(1)).await;
    }
    make_large(&db.pool, "a").await;
    make_large(&db.pool, "b").await;
    let last = claim_one(&db.pool, worker).await;
    assert_eq!(fail(&db.pool, &last, "no").await, "failed");
    let ended = run(&db.pool, run_id).await;
    assert_eq!(ended.status, "failed");
    assert_eq!(ended.error_message.as_deref(), Some(TOO_LARGE));
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_large_output_of_a_run_is_stored_as_long_as_it_fits() {
    let (db, worker) = database_with(&[step("a"), step("b")]).await;
    let run_id = start(&db.pool, "f", json!({})).await;
    let tasks = claim_all(&db.pool, worker).await;
    complete(&db.pool, of_step(&tasks, "a"), json!("y".repeat(2_000_000))).await;
    complete_large(&db.pool, run_id, "b", 0).await;
    let ended = "select status, length(output ->> 'a'), length(output ->> 'b') from pgflow.runs where run_id = $1";
    let ended: (String, i32, i32) = sqlx::query_as(ended)
        .bind(run_id)
        .fetch_one(&db.pool)
        .await
        .expect("the run is there");
    assert_eq!(ended, ("completed".to_owned(), 2_000_000, 134_217_728));
}

#[tokio::test]
async fn a_map_whose_elements_are_together_too_large_fails_and_none_of_them_is_blamed() {
    let (db, worker) = database_with(&[step("list"), step("each").map().deps(&["list"])]).await;
    let run_id = start(&db.pool, "f", json!({})).await;
    complete(&db.pool, &claim_one(&db.pool, worker).await, json!([1, 2])).await;
    assert_eq!(claim_all(&db.pool, worker).await.len(), 2);
    complete_large(&db.pool, run_id, "each", 0).await;
    let sql = format!(
        "select outcome from pgflow.complete_tasks(array['{run_id}'::uuid], array['each'], array[1], array[1], array[{LARGE}])"
    );
    let outcome: String = sqlx::query_scalar(AssertSqlSafe(sql))
        .fetch_one(&db.pool)
        .await
        .expect("recorded");
    assert_eq!(outcome, "failed");
    assert_eq!(
        outline(&db.pool, run_id).await,
        "run failed, list completed, each failed"
    );
    let reason = "the outputs of the 2 elements of map step \"each\" are together larger than a JSON value can be (256 MB); \
        return less for each element, or keep large data elsewhere and return where it lies";
    assert_eq!(
        run(&db.pool, run_id).await.error_message.as_deref(),
        Some(reason)
    );
    let blamed: i64 = sqlx::query_scalar(
        "select count(*) from pgflow.step_tasks where error_message is not null",
    )
    .fetch_one(&db.pool)
    .await
    .expect("tasks can be counted");
    assert_eq!(blamed, 0);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn json_that_prints_too_long_is_refused_on_entry() {
    let (db, worker) = database_with(&[step("a")]).await;
    let refused = execute(
        &db.pool,
        format!("select pgflow.start_flow('f', {EXPLOSIVE})"),
    )
    .await;
    let text = raised(refused);
    assert!(
        text.starts_with("PF009: the input takes over 1000000000 bytes as text"),
        "{text}"
    );

    let run_id = start(&db.pool, "f", json!({})).await;
    let task_of_a = claim_one(&db.pool, worker).await;
    let call = format!("select pgflow.complete_task('{run_id}', 'a', 0, {EXPLOSIVE})");
    let text = raised(execute(&db.pool, call).await);
    assert!(
        text.starts_with("PF009: the output takes over 1000000000 bytes as text"),
        "{text}"
    );
    assert_eq!(task(&db.pool, run_id, "a").await.status, "started");
    // A few such numbers, and many ordinary ones, are fine.
    complete(&db.pool, &task_of_a, json!(vec![1e300; 2000])).await;
    execute(&db.pool, "select pgflow.start_flow('f', '[1e131071]')")
        .await
        .expect("accepted");
}

/// A careful claim, as a worker makes it when an ordinary one fails.
async fn claim_carefully(session: &mut PgConnection, worker: Uuid) -> Vec<(Uuid, Value)> {
    sqlx::raw_sql("begin; select set_config('pgflow.careful_claims', 'on', true)")
        .execute(&mut *session)
        .await
        .expect("a setting of one's own");
    let sql = "select run_id, input from pgflow.claim_tasks($1, 10) order by message_id";
    let tasks = sqlx::query_as(sql)
        .bind(worker)
        .fetch_all(&mut *session)
        .await;
    sqlx::raw_sql("commit")
        .execute(&mut *session)
        .await
        .expect("committed");
    tasks.expect("a careful claim answers")
}

#[tokio::test]
async fn an_input_that_can_not_be_printed_fails_its_own_attempt() {
    let (db, worker) = database_with(&[step("a")]).await;
    let runs = [
        start(&db.pool, "f", json!({"n": 1})).await,
        start(&db.pool, "f", json!({"n": 2})).await,
        start(&db.pool, "f", json!({"n": 3})).await,
    ];
    // As an older version stored it.
    let change = format!(
        "update pgflow.runs set input = {EXPLOSIVE} where run_id = '{}'",
        runs[1]
    );
    execute(&db.pool, change).await.expect("stored");

    let mut session = db.pool.acquire().await.expect("a session");
    let claimed = claim_carefully(&mut session, worker).await;
    let expected = json!({
        "[pgflow: unreadable]": "the flow's input can't be handed to a worker: printed as text, it takes more than the 500000000 bytes that are the most"
    });
    assert_eq!(
        claimed,
        [
            (runs[0], json!({"n": 1})),
            (runs[1], expected),
            (runs[2], json!({"n": 3}))
        ]
    );
    // It ends with the transaction.
    start(&db.pool, "f", json!({"[pgflow: unreadable]": 1})).await;
    assert_eq!(raw_claim(&mut *session, worker, 10).await.len(), 1);
}

#[tokio::test]
async fn arrays_that_do_not_run_in_parallel_are_refused() {
    let (db, worker) = database_with(&[step("a")]).await;
    let ids = [
        start(&db.pool, "f", json!({})).await,
        start(&db.pool, "f", json!({})).await,
    ];
    claim_all(&db.pool, worker).await;
    let [one, two] = ids;
    let good = [
        format!("'{{{one},{two}}}'::uuid[]"),
        "'{a,a}'::text[]".to_owned(),
        "'{0,0}'::int[]".to_owned(),
        "'{1,1}'::int[]".to_owned(),
        "'{1,2}'::jsonb[]".to_owned(),
    ];
    let odd = [
        (0, format!("'[0:1]={{{one},{two}}}'::uuid[]")),
        (1, "'[2:3]={a,a}'::text[]".to_owned()),
        (2, "'{{0,0}}'::int[]".to_owned()),
        (3, "'{{1},{1}}'::int[]".to_owned()),
        (4, "'[0:1]={1,2}'::jsonb[]".to_owned()),
        (4, "'{{1,2}}'::jsonb[]".to_owned()),
        (4, "'{1}'::jsonb[]".to_owned()),
        (4, "null::jsonb[]".to_owned()),
    ];
    let call =
        |arrays: &[String]| format!("select * from pgflow.complete_tasks({})", arrays.join(", "));
    for (place, array) in odd {
        let mut arrays = good.to_vec();
        arrays[place].clone_from(&array);
        let text = raised(execute(&db.pool, call(&arrays)).await);
        assert!(
            text.starts_with("PF009: complete_tasks got arrays "),
            "{array}: {text}"
        );
    }
    execute(&db.pool, call(&good)).await.expect("completed");
    for (run_id, output) in ids.into_iter().zip([1, 2]) {
        assert_eq!(
            run(&db.pool, run_id).await.output,
            Some(json!({"a": output}))
        );
    }
}

#[tokio::test]
async fn arrays_of_any_shape_carry_their_values_along_where_they_are_taken() {
    let (db, worker) = database_with(&[step("a")]).await;
    let (one, two) = (Uuid::from_u128(1), Uuid::from_u128(2));
    let start = format!("select pgflow.start_flows('f', '[0:1]={{1,2}}', '[5:6]={{{one},{two}}}')");
    execute(&db.pool, start).await.expect("started");
    for (run_id, input) in [(one, 1), (two, 2)] {
        let stored: Value = sqlx::query_scalar("select input from pgflow.runs where run_id = $1")
            .bind(run_id)
            .fetch_one(&db.pool)
            .await
            .expect("started");
        assert_eq!(stored, json!(input));
    }
    let tasks = claim_all(&db.pool, worker).await;
    let lost = format!(
        "select array_agg(l) from pgflow.lost_attempts('[7:8]={{{one},{two}}}', '{{{{a,a}}}}', '[0:1]={{0,0}}', '{{1,7}}') l"
    );
    let lost: Vec<i32> = sqlx::query_scalar(AssertSqlSafe(lost))
        .fetch_one(&db.pool)
        .await
        .expect("answered");
    assert_eq!(lost, [2]);
    let text = raised(
        execute(
            &db.pool,
            "select pgflow.set_vt_batch('f', '{1,2}', '{5,null}')",
        )
        .await,
    );
    assert!(
        text.starts_with("PF009: set_vt_batch got an offset that is null"),
        "{text}"
    );
    assert_eq!(
        complete_batch(&db.pool, &[Item::of(&tasks[0], json!(1))]).await,
        ["completed"]
    );
}

#[tokio::test]
async fn notifications_that_can_not_be_sent_fail_nothing() {
    let db = TestDb::new().await;
    define(&db.pool, "f", &[step("a")]).await;
    let worker = crate::support::flows::worker(&db.pool, "f").await;
    let mut events = Events::at_level(&db.pool, "all").await;
    // As full as it gets while a session does not read it.
    let full = "create or replace function pg_catalog.pg_notification_queue_usage() returns float8 language sql as 'select 0.6::float8'";
    execute(&db.pool, full).await.expect("a superuser may");
    start(&db.pool, "f", json!({})).await;
    drain(&db.pool, worker, |_| json!(1)).await;
    assert_eq!(events.types(&db.pool).await, "");

    let sink = "create schema realtime; create function realtime.send(jsonb, text, text, boolean) returns void language plpgsql
        as $$ begin raise exception 'the sink is closed'; end $$";
    execute(&db.pool, sink).await.expect("made");
    set_event_level(&db.pool, "all").await;
    let run_id = start(&db.pool, "f", json!({})).await;
    drain(&db.pool, worker, |_| json!(1)).await;
    assert_eq!(run(&db.pool, run_id).await.status, "completed");
    assert_invariants(&db.pool).await;
}
