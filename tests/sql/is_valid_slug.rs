//! `is_valid_slug`: the shared vectors, and random slugs through Rust and SQL at once.

use pgflow_definition::slug::check_slug;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, TestRunner};
use serde_json::Value;
use sqlx::postgres::PgPool;

use crate::support::TestDb;

/// The number of random slugs that are compared.
const RANDOM_SLUGS: usize = 4000;

/// Returns the verdicts of SQL on each slug, in order.
async fn validities(pool: &PgPool, slugs: &[String]) -> Vec<bool> {
    sqlx::query_scalar(
        "select pgflow.is_valid_slug(s) from unnest($1) with ordinality as x (s, n) order by n",
    )
    .bind(slugs)
    .fetch_all(pool)
    .await
    .expect("slugs can be checked")
}

fn in_rust(slugs: &[String]) -> Vec<bool> {
    slugs.iter().map(|slug| check_slug(slug).is_ok()).collect()
}

#[tokio::test]
async fn every_vector_is_judged_as_written_by_both() {
    let db = TestDb::new().await;
    let vectors: Value =
        serde_json::from_str(include_str!("../../pgflow-definition/vectors/naming.json"))
            .expect("the vectors are JSON");
    let (slugs, expected): (Vec<String>, Vec<bool>) = vectors["slugs"]
        .as_array()
        .expect("slugs")
        .iter()
        .map(|vector| {
            let slug = vector["slug"].as_str().expect("a slug").to_owned();
            (slug, vector["valid"].as_bool().expect("a verdict"))
        })
        .unzip();
    assert_eq!(validities(&db.pool, &slugs).await, expected);
    assert_eq!(in_rust(&slugs), expected);
}

#[tokio::test]
async fn null_is_not_valid() {
    let db = TestDb::new().await;
    let valid: bool = sqlx::query_scalar("select pgflow.is_valid_slug(null)")
        .fetch_one(&db.pool)
        .await
        .expect("null can be checked");
    assert!(!valid);
}

/// Slugs around the border of what is valid: mostly good characters, now and then one that is not,
/// and lengths around 128.
fn slug() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[A-Za-z][A-Za-z0-9_]{0,11}",
        3 => "[A-Za-z0-9_]{0,6}",
        2 => "[rR][uU][nN][_0-9]?",
        2 => "[a-z]{126,130}",
        1 => "[A-Za-z0-9_ .$é\n\t-]{0,8}",
        1 => "[^\0]{0,4}",
    ]
}

#[tokio::test]
async fn random_slugs_are_judged_alike_in_rust_and_sql() {
    let db = TestDb::new().await;
    let mut runner = TestRunner::new(Config::default());
    let slugs: Vec<String> = (0..RANDOM_SLUGS)
        .map(|_| slug().new_tree(&mut runner).expect("a slug").current())
        .collect();
    let (sql, rust) = (validities(&db.pool, &slugs).await, in_rust(&slugs));
    let different: Vec<&String> = slugs
        .iter()
        .zip(sql.iter().zip(&rust))
        .filter_map(|(slug, (sql, rust))| (sql != rust).then_some(slug))
        .collect();
    assert!(different.is_empty(), "Rust and SQL differ on {different:?}");
    assert!(rust.contains(&true) && rust.contains(&false));
}
