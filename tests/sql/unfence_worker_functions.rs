//! `unfence_worker_functions`: each function is again what it was, or what was decided since.

use serde_json::Value;
use uuid::Uuid;

use super::stored::unchanged;
use crate::support::TestDb;
use crate::support::flows::{define, raw_claim, step};
use crate::support::invariants::assert_invariants;
use crate::support::operations::{
    disable, fence, function, standing, told_to_stop, track, try_register, unfence, worker_of,
};
use crate::support::rows::raised;

#[tokio::test]
async fn what_was_recorded_is_restored_false_with_its_time_and_reason_too() {
    let db = TestDb::new().await;
    for name in ["a", "b", "c"] {
        track(&db.pool, name).await;
    }
    disable(&db.pool, "b", Some("too many mails")).await;
    disable(&db.pool, "c", None).await;
    let mut before = Vec::new();
    for name in ["a", "b", "c"] {
        before.push(function(&db.pool, name).await);
    }
    let names = ["a", "b", "c"];
    fence(&db.pool, &names, Some("deploy"))
        .await
        .expect("fenced");
    assert_eq!(
        unfence(&db.pool, &["c", "b", "a"]).await.expect("unfenced"),
        names
    );
    let mut after = Vec::new();
    for name in names {
        after.push(function(&db.pool, name).await);
    }
    assert_eq!(after, before);
    assert_eq!(standing(&db.pool, "a").await, "enabled");
    assert_eq!(standing(&db.pool, "b").await, "disabled: too many mails");
}

#[tokio::test]
async fn a_function_that_is_not_fenced_is_left_as_it_is() {
    let db = TestDb::new().await;
    track(&db.pool, "a").await;
    track(&db.pool, "b").await;
    disable(&db.pool, "b", Some("broken")).await;
    let call = unfence(&db.pool, &["a", "b"]);
    let names = unchanged(&db.pool, call).await;
    assert_eq!(names.expect("nothing to do"), ["a", "b"]);

    // Beside one that is.
    track(&db.pool, "c").await;
    fence(&db.pool, &["c"], None).await.expect("fenced");
    let names = unfence(&db.pool, &["a", "b", "c"]).await;
    assert_eq!(names.expect("unfenced"), ["a", "b", "c"]);
    assert_eq!(standing(&db.pool, "b").await, "disabled: broken");
    assert_eq!(standing(&db.pool, "c").await, "enabled");
}

#[tokio::test]
async fn one_unknown_name_and_every_fence_stays() {
    let db = TestDb::new().await;
    track(&db.pool, "a").await;
    fence(&db.pool, &["a"], None).await.expect("fenced");
    let call = unfence(&db.pool, &["a", "b"]);
    assert_eq!(
        raised(unchanged(&db.pool, call).await),
        "PF001: worker function \"b\" is not known"
    );
    let call = unfence(&db.pool, &[]);
    assert_eq!(
        raised(unchanged(&db.pool, call).await),
        "PF009: no worker function was named"
    );
}

#[tokio::test]
async fn what_is_disabled_behind_its_fence_is_disabled_after_it() {
    let db = TestDb::new().await;
    track(&db.pool, "a").await;
    fence(&db.pool, &["a"], Some("deploy"))
        .await
        .expect("fenced");
    let fenced = function(&db.pool, "a").await;
    disable(&db.pool, "a", Some("broken")).await;
    // The fence itself stays as it is.
    assert_eq!(
        standing(&db.pool, "a").await,
        "fenced: deploy (then disabled: broken)"
    );
    let row = function(&db.pool, "a").await;
    assert_eq!(row["fenced_at"], fenced["fenced_at"]);
    assert_eq!(row["disabled_at"], fenced["disabled_at"]);
    // The first reason is the one that counts.
    disable(&db.pool, "a", Some("broken as well")).await;
    let recorded = function(&db.pool, "a").await;
    assert_eq!(recorded, row);

    unfence(&db.pool, &["a"]).await.expect("unfenced");
    assert_eq!(standing(&db.pool, "a").await, "disabled: broken");
    let after = function(&db.pool, "a").await;
    assert_eq!(after["disabled_at"], row["recorded_disabled_at"]);
    assert_eq!(after["fenced_at"], Value::Null);
}

#[tokio::test]
async fn work_that_is_not_supported_disables_what_is_behind_a_fence() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("a")]).await;
    let worker = worker_of(&db.pool, "charge", "orders").await;
    // As when the fence comes while the worker's claim is under way.
    fence(&db.pool, &["charge"], Some("deploy"))
        .await
        .expect("fenced");
    sqlx::raw_sql(
        "update pgflow.workers set deprecated_at = null; select pgmq.send('orders', '{}')",
    )
    .execute(&db.pool)
    .await
    .expect("rows can be changed");
    assert_eq!(raw_claim(&db.pool, worker, 1).await.len(), 1);
    let poisoned =
        "disabled: unsupported work in queue \"orders\": message 1: no task has this message";
    assert_eq!(
        standing(&db.pool, "charge").await,
        format!("fenced: deploy (then {poisoned})")
    );
    unfence(&db.pool, &["charge"]).await.expect("unfenced");
    assert_eq!(standing(&db.pool, "charge").await, poisoned);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_released_function_starts_again_with_new_workers() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("a")]).await;
    let old = worker_of(&db.pool, "charge", "orders").await;
    fence(&db.pool, &["charge"], None).await.expect("fenced");
    raised(try_register(&db.pool, "charge", "orders").await);
    unfence(&db.pool, &["charge"]).await.expect("unfenced");
    let new: Uuid = try_register(&db.pool, "charge", "orders")
        .await
        .expect("registered");
    // The old one was told, and nobody takes that back.
    assert_eq!(
        told_to_stop(&db.pool, &[old, new]).await,
        [Some("fenced".to_owned()), None]
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_function_can_be_fenced_again_and_records_what_it_is_then() {
    let db = TestDb::new().await;
    track(&db.pool, "a").await;
    disable(&db.pool, "a", Some("broken")).await;
    fence(&db.pool, &["a"], Some("one")).await.expect("fenced");
    unfence(&db.pool, &["a"]).await.expect("unfenced");
    sqlx::query("select pgflow.enable_worker_function('a')")
        .execute(&db.pool)
        .await
        .expect("enabled");
    fence(&db.pool, &["a"], Some("two")).await.expect("fenced");
    assert_eq!(standing(&db.pool, "a").await, "fenced: two (then enabled)");
}
