use pgflow::sqlx;

use super::example;
use crate::support::{TestDb, invariants::assert_invariants};

#[tokio::test]
async fn refusals_cost_no_attempt_and_failures_do() {
    let db = TestDb::new().await;
    let output = example("rate_limited", &db.url).output().await.unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let (summary, requests) = text.split_once('\n').unwrap();
    assert_eq!(summary, "10 pages, 151 bytes, no licence");
    let counts: Vec<i64> = requests
        .split(' ')
        .filter_map(|word| word.parse().ok())
        .collect();
    // 10 pages and the licence; pages 3, 6 and 9 fail once. Of the first requests 3 are accepted.
    let [answered, failed, refused] = counts[..] else {
        panic!("{text}");
    };
    assert_eq!((answered, failed), (11, 3), "{text}");
    assert!(refused >= 8, "{text}");

    let attempts: (i64, i64, i32) = sqlx::query_as(
        "select sum(attempts_count), sum(uncounted_attempts), max(attempts_count - uncounted_attempts) \
         from pgflow.step_tasks where step_slug <> 'summary'",
    )
    .fetch_one(&db.pool)
    .await
    .unwrap();
    assert_eq!(attempts, (11 + 3 + refused, refused, 2));
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
