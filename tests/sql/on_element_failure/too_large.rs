//! Outputs that are together larger than JSON can be, at the failure of an element.

use serde_json::json;

use super::{claimed, counters, errors, tolerant};
use crate::support::flows::{fail, start, step};
use crate::support::invariants::assert_invariants;
use crate::support::rows::run;
use crate::support::runs::{claim_all, database_with, outline};

/// Each together less than JSON can be, all together more.
#[tokio::test]
async fn a_map_whose_outputs_are_too_large_together_fails_its_run_also_at_a_failure() {
    let (db, run_id, tasks) = claimed(3, tolerant("m"), &[]).await;
    for task in &tasks[..2] {
        let completed: String = sqlx::query_scalar(
            "select status from pgflow.complete_task($1, $2, $3, to_jsonb(repeat('x', 140000000)), $4)",
        )
        .bind(task.run_id)
        .bind(&task.step_slug)
        .bind(task.task_index)
        .bind(task.attempt)
        .fetch_one(&db.pool)
        .await
        .expect("completed");
        assert_eq!(completed, "completed");
    }
    assert_eq!(fail(&db.pool, &tasks[2], "no").await, "failed");
    let error = run(&db.pool, run_id).await.error_message.expect("an error");
    assert!(
        error.starts_with("the outputs of the 3 elements of map step \"m\" are together larger than a JSON value can be"),
        "{error}"
    );
    assert_eq!(errors(&db.pool, run_id).await[2].as_deref(), Some("no"));
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_run_that_would_end_with_too_large_an_output_fails_also_at_the_failure_of_an_element() {
    let (db, worker) = database_with(&[tolerant("m"), step("a")]).await;
    let run_id = start(&db.pool, "f", json!([1, 2])).await;
    let tasks = claim_all(&db.pool, worker).await;
    // The map's output fits, and that of the run, in which it is a part, does not.
    for slug in ["m", "a"] {
        let sql = "select status from pgflow.complete_task($1, $2, 0, to_jsonb(repeat('x', 140000000)), 1)";
        let completed: String = sqlx::query_scalar(sql)
            .bind(run_id)
            .bind(slug)
            .fetch_one(&db.pool)
            .await
            .expect("recorded");
        assert_eq!(completed, "completed");
    }
    let last = tasks.iter().find(|task| task.task_index == 1);
    assert_eq!(fail(&db.pool, last.expect("claimed"), "no").await, "failed");
    assert_eq!(
        outline(&db.pool, run_id).await,
        "run failed, m failed, a completed"
    );
    let error = run(&db.pool, run_id).await.error_message.expect("an error");
    assert!(
        error.contains("together larger than a JSON value can be"),
        "{error}"
    );
    assert_eq!(counters(&db.pool, run_id).await, (Some(0), 1));
    assert_eq!(errors(&db.pool, run_id).await[1].as_deref(), Some("no"));
    assert_invariants(&db.pool).await;
}
