//! Every public function with arguments that are missing or empty: it answers, or refuses with a
//! code of its own.

use sqlx::postgres::PgPool;
use sqlx::{AssertSqlSafe, Connection, PgConnection};

use crate::support::TestDb;

/// A flow, a run and a worker that the calls of [`calls`] name.
const KNOWN: &str = "
    select pgflow.create_flow('f');
    select pgflow.add_step('f', 'a');
    select pgflow.track_worker_function('w');
    select pgflow.register_worker('11111111-1111-1111-1111-111111111111', 'w', 'f', null, 'f', '{}');
    select pgflow.start_flow('f', '1', '22222222-2222-2222-2222-222222222222')";

/// For each argument of each public function, calls in which that argument alone is missing or
/// empty.
const CALLS: &str = r"
    select format(
        'select pgflow.%I(%s)', p.proname,
        string_agg(case when a.n = b.n then v.value else a.usual end || '::' || a.type, ', ' order by a.n)
    )
    from pg_proc p
    cross join lateral (
        select
            t.n, format_type(t.type, null) as type,
            case
                when p.proargnames[t.n] = 'worker_id' then $$'11111111-1111-1111-1111-111111111111'$$
                when p.proargnames[t.n] = 'worker_ids' then $$'{11111111-1111-1111-1111-111111111111}'$$
                when p.proargnames[t.n] in ('queue_name', 'flow_slug') then $$'f'$$
                when p.proargnames[t.n] = 'step_slug' then $$'a'$$
                when p.proargnames[t.n] = 'function_name' then $$'w'$$
                when p.proargnames[t.n] = 'function_names' then $$'{w}'$$
                when p.proargnames[t.n] = 'start_mode' then $$'process'$$
                when p.proargnames[t.n] = 'queue_mode' then $$'flow'$$
                when p.proargnames[t.n] = 'environment' then $$'production'$$
                else case format_type(t.type, null)
                    when 'uuid' then $$'22222222-2222-2222-2222-222222222222'$$
                    when 'uuid[]' then $$'{22222222-2222-2222-2222-222222222222}'$$
                    when 'text' then $$'x'$$
                    when 'text[]' then $$'{a}'$$
                    when 'boolean' then 'true'
                    when 'interval' then $$'1 day'$$
                    when 'jsonb' then $$'{}'$$
                    when 'jsonb[]' then $$'{1}'$$
                    when 'timestamp with time zone[]' then $$'{now}'$$
                    when 'timestamp with time zone' then $$'now'$$
                    when 'integer[]' then $$'{0}'$$
                    when 'bigint[]' then $$'{1}'$$
                    else '1'
                end
            end as usual
        from unnest(p.proargtypes::oid[]) with ordinality as t (type, n)
    ) a
    cross join generate_series(1, p.pronargs) b (n)
    cross join lateral (
        select unnest(case
            when p.proargtypes[b.n - 1] = 'text'::regtype then array['null', $$''$$, $$E'\n'$$]
            when format_type(p.proargtypes[b.n - 1], null) like '%[]' then array['null', $$'{}'$$, $$'{null}'$$, $$'{null,null}'$$]
            else array['null']
        end)
    ) v (value)
    where p.pronamespace = 'pgflow'::regnamespace and p.proname !~ '^_'
    group by p.oid, p.proname, b.n, v.value
    order by 1";

async fn known(pool: &PgPool) {
    let known = sqlx::raw_sql(KNOWN).execute(pool).await;
    known.expect("a flow, a run and a worker");
}

fn sqlstate(error: &sqlx::Error) -> Option<String> {
    error.as_database_error()?.code().map(Into::into)
}

#[tokio::test]
async fn no_function_fails_with_an_error_that_is_not_its_own() {
    let db = TestDb::new().await;
    known(&db.pool).await;
    let calls: Vec<String> = sqlx::query_scalar(CALLS)
        .fetch_all(&db.pool)
        .await
        .expect("the catalog can be read");
    assert!(calls.len() > 150, "{} calls", calls.len());
    let mut session = PgConnection::connect(&db.url).await.expect("a session");
    let mut raw = Vec::new();
    for call in calls {
        let mut undone = session.begin().await.expect("a transaction");
        let done = sqlx::raw_sql(AssertSqlSafe(call.clone()))
            .execute(&mut *undone)
            .await;
        if let Err(error) = done
            && !sqlstate(&error).is_some_and(|code| code.starts_with("PF"))
        {
            raw.push(format!("{call}: {error}"));
        }
        undone.rollback().await.expect("undone");
    }
    assert_eq!(raw, [""; 0]);
}

#[tokio::test]
async fn a_worker_function_has_a_name_and_a_worker_an_id_and_a_retention_is_in_the_past() {
    let db = TestDb::new().await;
    known(&db.pool).await;
    for call in [
        "select pgflow.track_worker_function(null)",
        "select pgflow.track_worker_function('')",
        "select pgflow.register_worker(null, 'w', 'f', null, 'f', '{}')",
        "select pgflow.register_worker(gen_random_uuid(), 'w', 'f', null, null, '{}')",
        // Compared as 361 days less 12 months of 30.
        "select pgflow.prune_data_older_than('-12 months 361 days')",
    ] {
        let refused = sqlx::query(call).execute(&db.pool).await.expect_err(call);
        assert_eq!(
            sqlstate(&refused).as_deref(),
            Some("PF009"),
            "{call}: {refused}"
        );
    }
}

/// As old applications set it.
#[tokio::test]
async fn sessions_without_standard_strings_do_everything() {
    let db = TestDb::new().await;
    let mut session = PgConnection::connect(&db.url).await.expect("a session");
    for call in [
        "set standard_conforming_strings = off; set escape_string_warning = off",
        KNOWN,
        "select pgflow.claim_tasks('11111111-1111-1111-1111-111111111111', 10)",
        "select pgflow.fail_task('22222222-2222-2222-2222-222222222222', 'a', 0, 'no', 0)",
        "select pgflow.claim_tasks('11111111-1111-1111-1111-111111111111', 10)",
        "select pgflow.complete_task('22222222-2222-2222-2222-222222222222', 'a', 0, '1')",
        "select pgflow.requeue_stalled_tasks(), pgflow.explain_step('22222222-2222-2222-2222-222222222222', 'a')",
        "select pgflow.prune_data_older_than('0')",
        "select pgflow.delete_flow_and_data('f')",
    ] {
        let done = sqlx::raw_sql(call).execute(&mut session).await;
        done.unwrap_or_else(|error| panic!("{call}: {error}"));
    }
}
