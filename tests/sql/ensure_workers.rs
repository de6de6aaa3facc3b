//! `ensure_workers`: the `http` functions that somebody should start, and their invocation where
//! `pg_net` is there: a stand-in for it, and for Vault, records what it is asked for.

use serde_json::{Value, json};
use sqlx::AssertSqlSafe;
use sqlx::postgres::{PgExecutor, PgPool};
use uuid::Uuid;

use super::mark_worker_stopped::stop;
use super::stored::unchanged;
use crate::support::TestDb;
use crate::support::flows::define;
use crate::support::operations::{disable, fence, try_register, unfence};
use crate::support::sessions::without_waiting;
use crate::worker::capture::capture;

const SECRET: &str = "s3cr3t-of-the-vault";

type Row = (String, bool, Option<i64>);

async fn ensure(db: impl PgExecutor<'_>) -> Vec<Row> {
    sqlx::query_as("select * from pgflow.ensure_workers() order by function_name")
        .fetch_all(db)
        .await
        .expect("functions can be ensured")
}

/// A row of what nobody invoked.
fn named(function: &str) -> Row {
    (function.to_owned(), false, None)
}

/// A row of what was invoked, with the number of its request.
fn invoked(function: &str, request: i64) -> Row {
    (function.to_owned(), true, Some(request))
}

async fn execute(pool: &PgPool, statement: impl Into<String>) {
    let statement = statement.into();
    let done = sqlx::raw_sql(AssertSqlSafe(statement.clone()))
        .execute(pool)
        .await;
    done.unwrap_or_else(|error| panic!("{statement}: {error}"));
}

/// A database with a flow, and these functions of start mode `http`, each with a URL.
async fn with_functions(names: &[&str]) -> TestDb {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[]).await;
    for name in names {
        execute(
            &db.pool,
            format!(
                "select pgflow.track_worker_function('{name}', 'http');
                 select pgflow.set_worker_function_url('{name}', 'https://example.org/{name}')"
            ),
        )
        .await;
    }
    db
}

/// Installs what `pg_net` offers, with its names and defaults. It fails for URLs that show it, and
/// lays open whatever it was given.
async fn install_net(pool: &PgPool) {
    execute(
        pool,
        "create schema net;
         create table net.calls (id bigint generated always as identity, url text, body jsonb, params jsonb, headers jsonb, timeout_milliseconds int);
         create function net.http_post(url text, body jsonb default '{}', params jsonb default '{}',
             headers jsonb default '{\"Content-Type\": \"application/json\"}', timeout_milliseconds integer default 5000)
         returns bigint language plpgsql as $$
         declare
             v_id bigint;
         begin
             if url like '%broken%' then
                 raise exception 'can not post to % with %', url, headers using detail = headers::text, hint = body::text;
             end if;
             insert into net.calls (url, body, params, headers, timeout_milliseconds)
             values (url, body, params, headers, timeout_milliseconds) returning id into v_id;
             return v_id;
         end
         $$",
    )
    .await;
}

/// Installs what Vault offers to read, with these secrets.
async fn install_vault(pool: &PgPool, secrets: &[(&str, &str)]) {
    execute(
        pool,
        "create schema vault;
         create table vault.decrypted_secrets (id uuid default gen_random_uuid(), name text, secret text, decrypted_secret text)",
    )
    .await;
    for (name, secret) in secrets {
        sqlx::query(
            "insert into vault.decrypted_secrets (name, secret, decrypted_secret) values ($1, 'encrypted', $2)",
        )
        .bind(name)
        .bind(secret)
        .execute(pool)
        .await
        .expect("a secret");
    }
}

/// Returns the posted requests: URL, body and headers, in order.
async fn posted(pool: &PgPool) -> Vec<(String, Value, Value)> {
    sqlx::query_as("select url, body, headers from net.calls order by id")
        .fetch_all(pool)
        .await
        .expect("calls are recorded")
}

/// Functions were invoked this long before.
async fn age_invocations(pool: &PgPool, by: &str) {
    execute(
        pool,
        format!(
            "update pgflow.worker_functions set last_invoked_at = last_invoked_at - interval '{by}'"
        ),
    )
    .await;
}

async fn register(pool: &PgPool, function: &str) -> Uuid {
    let registered = try_register(pool, function, "orders").await;
    registered.expect("the worker can be registered")
}

#[tokio::test]
async fn functions_without_a_worker_are_named_and_stamped() {
    let db = with_functions(&["a", "b"]).await;
    execute(&db.pool, "select pgflow.track_worker_function('process')").await;
    assert_eq!(ensure(&db.pool).await, [named("a"), named("b")]);
    let stamped: Vec<(String, bool)> = sqlx::query_as(
        "select function_name, last_invoked_at <= clock_timestamp() and last_invoked_at > created_at
         from pgflow.worker_functions where last_invoked_at is not null order by 1",
    )
    .fetch_all(&db.pool)
    .await
    .expect("functions can be read");
    assert_eq!(stamped, [("a".to_owned(), true), ("b".to_owned(), true)]);
    let none = unchanged(&db.pool, ensure(&db.pool)).await;
    assert_eq!(none, [] as [Row; 0], "not again within their debounce");
}

#[tokio::test]
async fn a_debounce_is_each_functions_own() {
    let db = with_functions(&["a", "b"]).await;
    execute(
        &db.pool,
        "update pgflow.worker_functions set debounce = '1 minute' where function_name = 'b'",
    )
    .await;
    ensure(&db.pool).await;
    age_invocations(&db.pool, "6 seconds").await;
    assert_eq!(ensure(&db.pool).await, [named("a")]);
    age_invocations(&db.pool, "54 seconds").await;
    assert_eq!(ensure(&db.pool).await, [named("a"), named("b")]);
}

#[tokio::test]
async fn an_invocation_of_the_future_keeps_nobody_from_starting() {
    let db = with_functions(&["a"]).await;
    ensure(&db.pool).await;
    // The clock was set back by an hour since.
    age_invocations(&db.pool, "-1 hour").await;
    assert_eq!(ensure(&db.pool).await, [named("a")]);
    let is_past: bool = sqlx::query_scalar(
        "select last_invoked_at <= clock_timestamp() from pgflow.worker_functions",
    )
    .fetch_one(&db.pool)
    .await
    .expect("one function");
    assert!(is_past);
}

#[tokio::test]
async fn only_a_live_worker_that_takes_work_counts() {
    let db = with_functions(&["a"]).await;
    let due = async || {
        age_invocations(&db.pool, "1 hour").await;
        ensure(&db.pool).await.len()
    };
    let [first, second] = [register(&db.pool, "a").await, register(&db.pool, "a").await];
    assert_eq!(due().await, 0);
    stop(&db.pool, first).await;
    assert_eq!(due().await, 0, "the second lives");
    execute(&db.pool, "update pgflow.workers set deprecated_at = now()").await;
    assert_eq!(due().await, 1, "it only finishes what it runs");
    let third = register(&db.pool, "a").await;
    assert_eq!(due().await, 0);
    let silent = "update pgflow.workers set last_heartbeat_at = now() - interval '6 seconds'";
    execute(&db.pool, silent).await;
    assert_eq!(due().await, 1, "it is lost");
    assert_ne!(second, third);
    // A worker of another function is none of this one.
    execute(&db.pool, "select pgflow.track_worker_function('b')").await;
    register(&db.pool, "b").await;
    assert_eq!(due().await, 1);
}

#[tokio::test]
async fn what_is_disabled_or_fenced_is_left_alone() {
    let db = with_functions(&["a", "b", "c"]).await;
    disable(&db.pool, "a", None).await;
    fence(&db.pool, &["b"], None).await.expect("fenced");
    assert_eq!(ensure(&db.pool).await, [named("c")]);
    unfence(&db.pool, &["b"]).await.expect("unfenced");
    assert_eq!(ensure(&db.pool).await, [named("b")]);
    execute(&db.pool, "select pgflow.enable_worker_function('a')").await;
    assert_eq!(ensure(&db.pool).await, [named("a")]);
}

#[tokio::test]
async fn two_callers_at_once_share_what_is_to_be_done() {
    let db = with_functions(&["a", "b"]).await;
    install_net(&db.pool).await;
    let mut first = db.pool.begin().await.expect("a first session");
    assert_eq!(
        ensure(&mut *first).await,
        [invoked("a", 1), invoked("b", 2)]
    );
    execute(&db.pool, "select pgflow.track_worker_function('c', 'http')").await;
    let second = without_waiting(ensure(&db.pool)).await;
    assert_eq!(second, [named("c")]);
    first.commit().await.expect("committed");
    assert_eq!(ensure(&db.pool).await, [] as [Row; 0]);
    assert_eq!(posted(&db.pool).await.len(), 2);
}

#[tokio::test]
async fn what_was_undone_is_done_by_the_next() {
    let db = with_functions(&["a"]).await;
    let mut first = db.pool.begin().await.expect("a first session");
    assert_eq!(ensure(&mut *first).await, [named("a")]);
    first.rollback().await.expect("undone");
    assert_eq!(ensure(&db.pool).await, [named("a")]);
}

#[tokio::test]
async fn a_worker_that_registers_meanwhile_is_not_waited_for() {
    let db = with_functions(&["a", "b"]).await;
    let mut starting = db.pool.begin().await.expect("a first session");
    let registered = try_register(&mut *starting, "a", "orders").await;
    registered.expect("registered");
    assert_eq!(without_waiting(ensure(&db.pool)).await, [named("b")]);
    starting.commit().await.expect("committed");
    assert_eq!(ensure(&db.pool).await, [] as [Row; 0]);
}

#[tokio::test]
async fn with_pg_net_those_with_a_url_are_posted_to() {
    let db = with_functions(&["a"]).await;
    install_net(&db.pool).await;
    execute(&db.pool, "select pgflow.track_worker_function('b', 'http')").await;
    assert_eq!(ensure(&db.pool).await, [invoked("a", 1), named("b")]);
    let headers = json!({"content-type": "application/json"});
    assert_eq!(
        posted(&db.pool).await,
        [(
            "https://example.org/a".to_owned(),
            json!({"function_name": "a"}),
            headers
        )]
    );
}

#[tokio::test]
async fn a_secret_of_the_vault_is_the_bearer_token_and_shows_nowhere_else() {
    let db = with_functions(&["a", "b"]).await;
    install_net(&db.pool).await;
    install_vault(&db.pool, &[("other", "no"), ("pgflow_auth_secret", SECRET)]).await;
    let rows: Vec<String> =
        sqlx::query_scalar("select to_jsonb(e)::text from pgflow.ensure_workers() e")
            .fetch_all(&db.pool)
            .await
            .expect("functions can be ensured");
    assert_eq!(rows.len(), 2);
    assert!(!rows.concat().contains(SECRET), "{rows:?}");
    for (_, body, headers) in posted(&db.pool).await {
        assert_eq!(headers["authorization"], json!(format!("Bearer {SECRET}")));
        assert!(!body.to_string().contains(SECRET));
    }
    let stored = super::stored::stored(&db.pool).await;
    assert!(stored.iter().all(|row| !row.contains(SECRET)));
}

#[tokio::test]
async fn the_key_of_supabase_is_the_token_where_there_is_no_secret_of_its_own() {
    for (own, key, expected) in [
        (None, "key", "Bearer key"),
        (Some(""), "key", "Bearer key"),
        (Some("own"), "key", "Bearer own"),
        (Some("own"), "", "Bearer own"),
    ] {
        let db = with_functions(&["a"]).await;
        install_net(&db.pool).await;
        let mut secrets = vec![("supabase_service_role_key", key)];
        secrets.extend(own.map(|own| ("pgflow_auth_secret", own)));
        install_vault(&db.pool, &secrets).await;
        assert_eq!(ensure(&db.pool).await, [invoked("a", 1)]);
        let (_, _, headers) = &posted(&db.pool).await[0];
        assert_eq!(headers["authorization"], json!(expected), "{secrets:?}");
    }
}

#[tokio::test]
async fn an_empty_or_missing_secret_is_no_token() {
    for secrets in [
        vec![],
        vec![("other", "no")],
        vec![("pgflow_auth_secret", "")],
        vec![
            ("pgflow_auth_secret", ""),
            ("supabase_service_role_key", ""),
        ],
    ] {
        let db = with_functions(&["a"]).await;
        install_net(&db.pool).await;
        install_vault(&db.pool, &secrets).await;
        assert_eq!(ensure(&db.pool).await, [invoked("a", 1)], "{secrets:?}");
        let posted = posted(&db.pool).await;
        assert_eq!(posted[0].2, json!({"content-type": "application/json"}));
    }
}

#[tokio::test]
async fn a_vault_without_pg_net_is_not_looked_into() {
    let db = with_functions(&["a"]).await;
    execute(
        &db.pool,
        "create schema vault; create view vault.decrypted_secrets as select 1 / (random() * 0)::int as decrypted_secret, 'x' as name",
    )
    .await;
    assert_eq!(ensure(&db.pool).await, [named("a")]);
}

#[tokio::test]
async fn a_function_of_another_shape_is_not_pg_net() {
    let db = with_functions(&["a"]).await;
    execute(
        &db.pool,
        "create schema net;
         create function net.http_post(url text, body jsonb) returns bigint language sql as 'select 1::bigint'",
    )
    .await;
    assert_eq!(ensure(&db.pool).await, [named("a")]);
}

#[tokio::test]
async fn a_function_that_can_not_be_invoked_keeps_no_other_from_it() {
    let db = with_functions(&["a", "broken", "c"]).await;
    install_net(&db.pool).await;
    install_vault(&db.pool, &[("pgflow_auth_secret", SECRET)]).await;
    let rows = ensure(&db.pool).await;
    let names: Vec<(&str, bool)> = rows.iter().map(|(n, i, _)| (n.as_str(), *i)).collect();
    assert_eq!(names, [("a", true), ("broken", false), ("c", true)]);
    assert_eq!(rows[1].2, None);
    assert_eq!(posted(&db.pool).await.len(), 2);
    // Tried again when its debounce is over, and not before.
    assert_eq!(ensure(&db.pool).await, [] as [Row; 0]);
}

#[tokio::test]
async fn a_warning_says_why_and_not_the_secret() {
    let db = with_functions(&["broken"]).await;
    install_net(&db.pool).await;
    install_vault(&db.pool, &[("pgflow_auth_secret", SECRET)]).await;
    let logged = capture();
    ensure(&db.pool).await;
    let warning = logged.line("worker function \"broken\" could not be invoked");
    assert!(warning.contains("P0001"), "{warning}");
    assert!(!logged.all().contains(SECRET), "{}", logged.all());

    // Without a secret, nothing needs to be kept back.
    execute(&db.pool, "drop schema vault cascade").await;
    age_invocations(&db.pool, "1 hour").await;
    let logged = capture();
    ensure(&db.pool).await;
    logged.line("can not post to https://example.org/broken");
}
