use pgflow::sqlx;

use super::example;
use crate::support::{TestDb, invariants::assert_invariants};

#[tokio::test]
async fn comes_back_when_the_site_says_and_never_for_what_is_not_there() {
    let db = TestDb::new().await;
    let output = example("rate_limited", &db.url).output().await.unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let (summary, refused) = text.split_once('\n').unwrap();
    assert_eq!(summary, "10 pages, 101 bytes, no licence");
    let refused: i64 = refused.split(' ').next().unwrap().parse().unwrap();
    // The site answers 4 requests at once, and 11 are made.
    assert!(refused >= 7, "{text}");

    // Each refusal is an attempt, and so is each answer; the missing page was answered once.
    let attempts: i64 = sqlx::query_scalar(
        "select sum(attempts_count) from pgflow.step_tasks where step_slug <> 'summary'",
    )
    .fetch_one(&db.pool)
    .await
    .unwrap();
    assert_eq!(attempts, refused + 11);
    let licence: (String, String, Option<String>) = sqlx::query_as(
        "select s.status, t.status, t.error_message from pgflow.step_states s \
         join pgflow.step_tasks t on t.run_id = s.run_id and t.step_slug = s.step_slug where s.step_slug = 'licence'",
    )
    .fetch_one(&db.pool)
    .await
    .unwrap();
    let missing = Some("there is no page /licence".to_owned());
    assert_eq!(
        licence,
        ("skipped".to_owned(), "failed".to_owned(), missing)
    );
    assert_invariants(&db.pool).await;
}
