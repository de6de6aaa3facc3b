//! The remains of years: ended runs with their tasks, and archived messages.

use sqlx::{AssertSqlSafe, PgPool};

use crate::support::TestDb;
use crate::support::flows::{define, step};

/// Ended runs; each has 49 tasks of the map and one of the step after it.
pub(super) const RUNS: i32 = 20_000;

/// A flow of every kind of step, in a database where statistics are taken only when the test does.
pub(super) async fn empty() -> TestDb {
    let db = TestDb::new().await;
    let steps = [
        step("each").map(),
        step("last").deps(&["each"]),
        step("fragile").when_exhausted("skip-cascade"),
        step("after").deps(&["fragile"]),
    ];
    define(&db.pool, "f", &steps).await;
    run(&db.pool, NO_AUTOVACUUM).await;
    // The ids before that are the past's.
    run(
        &db.pool,
        "alter table pgmq.q_f alter msg_id restart with 1000001",
    )
    .await;
    run(&db.pool, "analyze").await;
    db
}

/// Workers that have stopped, half of them of a function that runs no more.
pub(super) const WORKERS: i32 = 50_000;

/// A million ended tasks and archived messages, and the workers that there were, as if the flow had
/// been in use for long.
pub(super) async fn insert(pool: &PgPool) {
    let workers = in_one_session(pool, RUNS, &[WORKER_ROWS]);
    tokio::join!(insert_runs(pool, RUNS), workers);
}

/// Ended runs alone, as many as that.
pub(super) async fn insert_runs(pool: &PgPool, number: i32) {
    let runs = in_one_session(pool, number, RUN_ROWS);
    let messages = in_one_session(pool, number, &[MESSAGE_ROWS]);
    tokio::join!(runs, messages);
}

async fn in_one_session(pool: &PgPool, runs: i32, statements: &[&str]) {
    let mut session = pool.acquire().await.expect("a session");
    for statement in statements {
        let statement = statement.replace("{runs}", &runs.to_string());
        let statement = statement.replace("{workers}", &WORKERS.to_string());
        sqlx::raw_sql(AssertSqlSafe(statement))
            .execute(&mut *session)
            .await
            .expect("rows can be inserted");
    }
}

pub(super) async fn run(pool: &PgPool, statement: &'static str) {
    let done = sqlx::raw_sql(statement).execute(pool).await;
    done.unwrap_or_else(|error| panic!("{statement}: {error}"));
}

/// Statistics that come by themselves would make the test another one at each run.
const NO_AUTOVACUUM: &str = r"
do $$
declare
    v_table regclass;
begin
    for v_table in
        select oid from pg_class where relnamespace in ('pgflow'::regnamespace, 'pgmq'::regnamespace) and relkind = 'r'
    loop
        execute format('alter table %s set (autovacuum_enabled = false)', v_table);
    end loop;
end
$$";

/// Without triggers and foreign keys, and in the order of the keys: quick, and the same rows.
const RUN_ROWS: &[&str] = &[
    "set session_replication_role = replica",
    "alter table pgflow.step_tasks set unlogged",
    "create temp table history as
     select run_id, n::int, timestamp '2020-01-01' + make_interval(mins => n::int) as at
     from (select run_id, row_number() over (order by run_id) as n from (
         select gen_random_uuid() as run_id from generate_series(1, {runs})
     ) ids) numbered",
    "insert into pgflow.runs (run_id, flow_slug, status, input, output, remaining_steps, started_at, completed_at)
     select run_id, 'f', 'completed', '[]', '{}', 0, at, at + interval '1 minute' from history",
    "insert into pgflow.step_states
         (flow_slug, run_id, step_slug, status, initial_tasks, remaining_tasks, created_at, started_at, completed_at, skipped_at, skip_reason, output)
     select 'f', run_id, step_slug, status, tasks, case when status = 'completed' then 0 end, at,
         case when status = 'completed' then at end, case when status = 'completed' then at + interval '1 minute' end,
         case when status = 'skipped' then at end, skip_reason, case when status = 'completed' then '1'::jsonb end
     from history
     cross join (values
         ('after', 'skipped', 1, 'dependency_skipped'), ('each', 'completed', 49, null),
         ('fragile', 'skipped', 1, 'condition_unmet'), ('last', 'completed', 1, null)
     ) s (step_slug, status, tasks, skip_reason)",
    "insert into pgflow.step_tasks
         (flow_slug, run_id, step_slug, task_index, queue_name, message_id, status, attempts_count, queued_at, started_at, completed_at, output)
     select 'f', run_id, case when i < 49 then 'each' else 'last' end, case when i < 49 then i else 0 end,
         'f', (n - 1) * 50 + i + 1, 'completed', 1, at, at, at + interval '1 minute', '1'
     from history cross join generate_series(0, 49) i",
    "drop table history",
    "set session_replication_role = origin",
];

const MESSAGE_ROWS: &str = "
    alter table pgmq.a_f set unlogged;
    insert into pgmq.a_f (msg_id, read_ct, enqueued_at, archived_at, vt, message)
    select m, 1, timestamp '2020-01-01', timestamp '2020-01-01' + make_interval(secs => m), '2020-01-01', '{}'
    from generate_series(1, {runs} * 50) m";

const WORKER_ROWS: &str = "
    insert into pgflow.workers (worker_id, function_name, queue_name, flow_slug, started_at, last_heartbeat_at, stopped_at)
    select gen_random_uuid(), case n % 2 when 0 then 'test-worker' else 'idle' end, 'f', 'f', at, at + interval '1 minute', at + interval '1 minute'
    from (select n, now() - interval '40 days' + make_interval(mins => n) as at from generate_series(1, {workers}) n) ended";
