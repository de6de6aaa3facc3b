//! Reports on the last elements, at once.

use serde_json::json;

use super::{claimed, counters, tolerant};
use crate::support::events::Events;
use crate::support::flows::{complete, fail, step};
use crate::support::invariants::assert_invariants;
use crate::support::rows::{run, step_state};
use crate::support::sessions::until_blocked;

#[tokio::test]
async fn the_last_completion_and_the_last_failure_end_the_map_once_whoever_is_first() {
    for failure_first in [true, false] {
        let after = [step("after").deps(&["m"])];
        let (db, run_id, tasks) = claimed(2, tolerant("m"), &after).await;
        let mut events = Events::at_level(&db.pool, "all").await;
        let mut first = db.pool.begin().await.expect("a first session");
        let [failing, completing] = [tasks[0].clone(), tasks[1].clone()];
        let waiting = if failure_first {
            fail(&mut *first, &failing, "no").await;
            until_blocked(&db.pool, move |mut second| async move {
                complete(&mut *second, &completing, json!(1)).await
            })
            .await
        } else {
            complete(&mut *first, &completing, json!(1)).await;
            until_blocked(&db.pool, move |mut second| async move {
                fail(&mut *second, &failing, "no").await
            })
            .await
        };
        first.commit().await.expect("committed");
        let expected = if failure_first { "completed" } else { "failed" };
        assert_eq!(waiting.await.expect("answered"), expected);
        let state = step_state(&db.pool, run_id, "m").await;
        assert_eq!(state.output, Some(json!([null, 1])));
        assert_eq!(counters(&db.pool, run_id).await, (Some(0), 1));
        assert_eq!(
            events.types(&db.pool).await,
            "step:completed m, step:started after"
        );
        assert_invariants(&db.pool).await;
    }
}

#[tokio::test]
async fn two_failures_at_once_are_both_counted() {
    let (db, run_id, tasks) = claimed(2, tolerant("m"), &[]).await;
    let mut first = db.pool.begin().await.expect("a first session");
    fail(&mut *first, &tasks[0], "one").await;
    let second = tasks[1].clone();
    let waiting = until_blocked(&db.pool, move |mut session| async move {
        fail(&mut *session, &second, "two").await
    })
    .await;
    first.commit().await.expect("committed");
    assert_eq!(waiting.await.expect("answered"), "failed");
    assert_eq!(
        run(&db.pool, run_id).await.error_message.as_deref(),
        Some("all 2 elements failed, at last element 1: two")
    );
    assert_invariants(&db.pool).await;
}
