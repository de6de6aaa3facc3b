//! `set_worker_function_url`: where a function is invoked.

use sqlx::postgres::{PgPool, PgQueryResult};

use super::stored::unchanged;
use crate::support::TestDb;
use crate::support::operations::{function, track};
use crate::support::rows::raised;

async fn set(pool: &PgPool, name: Option<&str>, url: Option<&str>) -> sqlx::Result<PgQueryResult> {
    sqlx::query("select pgflow.set_worker_function_url(function_name => $1, url => $2)")
        .bind(name)
        .bind(url)
        .execute(pool)
        .await
}

#[tokio::test]
async fn a_url_is_stored_replaced_and_taken_away() {
    let db = TestDb::new().await;
    track(&db.pool, "a").await;
    track(&db.pool, "b").await;
    for url in [
        Some("https://example.org/functions/v1/a"),
        Some("http://localhost:54321/a?b=c"),
        None,
    ] {
        set(&db.pool, Some("a"), url).await.expect("stored");
        assert_eq!(function(&db.pool, "a").await["http_url"].as_str(), url);
        assert_eq!(function(&db.pool, "b").await["http_url"].as_str(), None);
    }
}

#[tokio::test]
async fn what_can_not_be_posted_to_is_refused() {
    let db = TestDb::new().await;
    track(&db.pool, "a").await;
    for url in [
        "",
        "example.org/a",
        "ftp://example.org/a",
        "/functions/v1/a",
        "see https://example.org",
        "https://",
        "https:///a",
        "https://example.org/a b",
        "https://example.org/a\nhost: other",
    ] {
        let call = set(&db.pool, Some("a"), Some(url));
        let refused = raised(unchanged(&db.pool, call).await);
        assert!(
            refused.starts_with("PF009: the URL of worker function \"a\" "),
            "{url}: {refused}"
        );
    }
}

#[tokio::test]
async fn an_unknown_function_is_an_error() {
    let db = TestDb::new().await;
    track(&db.pool, "a").await;
    let url = Some("https://example.org");
    for (name, expected) in [
        (Some("b"), "PF001: worker function \"b\" is not known"),
        (None, "PF009: no worker function was named"),
    ] {
        let call = set(&db.pool, name, url);
        assert_eq!(raised(unchanged(&db.pool, call).await), expected);
    }
}
