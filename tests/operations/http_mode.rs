//! `docs/http-mode.md`, run from its first statement to a posted request, with stand-ins for the
//! extensions.

use serde_json::{Value, json};

use super::page::{blocks, the};
use super::{rows, run};
use crate::support::TestDb;

/// Stand-ins of `pg_net`, `pg_cron` and Vault for the page.
const EXTENSIONS: &str = "
    create schema net;
    create table net.calls (id bigint generated always as identity, url text, body jsonb, headers jsonb);
    create function net.http_post(url text, body jsonb default '{}', params jsonb default '{}', headers jsonb default '{}',
        timeout_milliseconds integer default 5000)
    returns bigint language sql as 'insert into net.calls (url, body, headers) values ($1, $2, $4) returning id';
    create schema cron;
    create table cron.job (jobname text primary key, schedule text, command text);
    create function cron.schedule(job_name text, schedule text, command text) returns bigint language sql as
        'insert into cron.job values ($1, $2, $3); select 1::bigint';
    create schema vault;
    create table vault.decrypted_secrets (name text, decrypted_secret text);
    create function vault.create_secret(secret text, name text) returns void language sql as
        'insert into vault.decrypted_secrets values ($2, $1)';
";

#[tokio::test]
async fn the_page_leads_from_nothing_to_a_posted_request_and_its_schedule() {
    let db = TestDb::new().await;
    run(&db.pool, EXTENSIONS).await;
    let page = blocks("http-mode.md");
    for block in page.iter().filter(|block| !block.says("create extension")) {
        let found = rows(&db.pool, block).await;
        assert_eq!(found.len(), 1, "{block:?}");
    }
    let (url, body, headers): (String, Value, Value) =
        sqlx::query_as("select url, body, headers from net.calls")
            .fetch_one(&db.pool)
            .await
            .expect("one request was posted");
    assert_eq!(url, "https://workers.example.com/pgflow/start");
    assert_eq!(body, json!({"function_name": "orders"}));
    assert_eq!(headers["authorization"], "Bearer a long random text");
    let jobs: Vec<String> = sqlx::query_scalar("select command from cron.job order by jobname")
        .fetch_all(&db.pool)
        .await
        .expect("jobs can be read");
    assert_eq!(
        jobs,
        [
            "select pgflow.ensure_workers()",
            "select pgflow.requeue_stalled_tasks()"
        ]
    );
    // What the schedule runs, the page has run manually.
    the(&page, "from pgflow.ensure_workers()");
}
