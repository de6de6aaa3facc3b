//! `fence_worker_functions`: a set of functions is taken out of service, with its workers, and what
//! it was is recorded.

use serde_json::{Value, json};
use sqlx::postgres::PgPool;
use uuid::Uuid;

use super::stored::unchanged;
use crate::support::TestDb;
use crate::support::flows::{claim, define, start, step};
use crate::support::invariants::assert_invariants;
use crate::support::operations::{
    disable, fence, function, heartbeats, standing, told_to_stop, track, try_register, worker_of,
};
use crate::support::rows::raised;

/// A function as it is before anybody changes it.
fn untouched() -> Value {
    json!({
        "start_mode": "process", "enabled": true, "disabled_at": null, "disabled_reason": null, "http_url": null,
        "fenced_at": null, "recorded_enabled": null, "recorded_disabled_at": null, "recorded_disabled_reason": null,
    })
}

async fn state_of(pool: &PgPool, worker: Uuid) -> (String, i64) {
    sqlx::query_as("select state, started_tasks from pgflow.worker_status where worker_id = $1")
        .bind(worker)
        .fetch_one(pool)
        .await
        .expect("the worker is known")
}

#[tokio::test]
async fn the_whole_set_is_disabled_with_what_it_was_and_its_workers_are_told() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("a")]).await;
    let [first, second, other] = [
        worker_of(&db.pool, "charge", "orders").await,
        worker_of(&db.pool, "notify", "orders").await,
        worker_of(&db.pool, "bystander", "orders").await,
    ];
    disable(&db.pool, "notify", Some("too many mails")).await;
    let before = function(&db.pool, "notify").await;

    let names = fence(&db.pool, &["notify", "charge"], Some("deploy 7")).await;
    assert_eq!(names.expect("fenced"), ["charge", "notify"]);
    assert_eq!(
        standing(&db.pool, "charge").await,
        "fenced: deploy 7 (then enabled)"
    );
    assert_eq!(
        standing(&db.pool, "notify").await,
        "fenced: deploy 7 (then disabled: too many mails)"
    );
    for name in ["charge", "notify"] {
        let row = function(&db.pool, name).await;
        assert_ne!(row["fenced_at"], Value::Null);
        assert_eq!(row["disabled_at"], row["fenced_at"]);
    }
    let row = function(&db.pool, "notify").await;
    assert_eq!(row["recorded_disabled_at"], before["disabled_at"]);
    assert_eq!(
        function(&db.pool, "charge").await["recorded_disabled_at"],
        Value::Null
    );
    assert_eq!(function(&db.pool, "bystander").await, untouched());
    let told = Some("fenced: deploy 7".to_owned());
    assert_eq!(
        told_to_stop(&db.pool, &[first, second, other]).await,
        [told.clone(), told, None]
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn without_a_reason_it_is_just_fenced() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[]).await;
    let worker = worker_of(&db.pool, "charge", "orders").await;
    fence(&db.pool, &["charge"], None).await.expect("fenced");
    assert_eq!(standing(&db.pool, "charge").await, "fenced (then enabled)");
    assert_eq!(
        told_to_stop(&db.pool, &[worker]).await,
        [Some("fenced".to_owned())]
    );
}

#[tokio::test]
async fn one_unknown_name_and_nothing_happens_to_any() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[]).await;
    worker_of(&db.pool, "charge", "orders").await;
    worker_of(&db.pool, "notify", "orders").await;
    let call = fence(
        &db.pool,
        &["charge", "zebra", "notify", "ape", "zebra"],
        None,
    );
    assert_eq!(
        raised(unchanged(&db.pool, call).await),
        "PF001: worker functions \"ape\", \"zebra\" are not known"
    );
    let call = fence(&db.pool, &["charge", "Notify"], None);
    assert_eq!(
        raised(unchanged(&db.pool, call).await),
        "PF001: worker function \"Notify\" is not known"
    );
}

#[tokio::test]
async fn a_set_has_at_least_one_function_and_each_has_a_name() {
    let db = TestDb::new().await;
    track(&db.pool, "charge").await;
    for names in ["'{}'", "null", "array['charge', null]"] {
        let query = format!("select pgflow.fence_worker_functions({names})");
        let call = sqlx::query(sqlx::AssertSqlSafe(query)).execute(&db.pool);
        assert_eq!(
            raised(unchanged(&db.pool, call).await),
            "PF009: no worker function was named",
            "{names}"
        );
    }
}

#[tokio::test]
async fn a_name_that_is_said_twice_is_fenced_once() {
    let db = TestDb::new().await;
    track(&db.pool, "charge").await;
    let names = fence(&db.pool, &["charge", "charge"], Some("deploy")).await;
    assert_eq!(names.expect("fenced"), ["charge"]);
    assert_eq!(
        standing(&db.pool, "charge").await,
        "fenced: deploy (then enabled)"
    );
}

#[tokio::test]
async fn a_second_fence_keeps_the_first_record_and_tells_the_workers_that_came_since() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("a")]).await;
    let early = worker_of(&db.pool, "charge", "orders").await;
    fence(&db.pool, &["charge"], Some("deploy"))
        .await
        .expect("fenced");
    let first = function(&db.pool, "charge").await;

    // Somebody let one in, manually.
    let late = Uuid::now_v7();
    sqlx::query(
        "insert into pgflow.workers (worker_id, function_name, queue_name, flow_slug) values ($1, 'charge', 'orders', 'orders')",
    )
    .bind(late)
    .execute(&db.pool)
    .await
    .expect("a worker");
    track(&db.pool, "notify").await;
    let names = fence(&db.pool, &["charge", "notify"], Some("again")).await;
    assert_eq!(names.expect("fenced"), ["charge", "notify"]);
    assert_eq!(function(&db.pool, "charge").await, first);
    assert_eq!(
        standing(&db.pool, "notify").await,
        "fenced: again (then enabled)"
    );
    assert_eq!(
        told_to_stop(&db.pool, &[early, late]).await,
        [
            Some("fenced: deploy".to_owned()),
            Some("fenced: again".to_owned())
        ]
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn no_worker_registers_behind_a_fence() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("a")]).await;
    track(&db.pool, "charge").await;
    fence(&db.pool, &["charge"], Some("deploy"))
        .await
        .expect("fenced");
    // As every worker does at its start.
    track(&db.pool, "charge").await;
    let refused = raised(try_register(&db.pool, "charge", "orders").await);
    assert!(
        refused.starts_with("PF007: worker function \"charge\" is disabled since ")
            && refused.ends_with(": fenced: deploy"),
        "{refused}"
    );
    let workers: i64 = sqlx::query_scalar("select count(*) from pgflow.workers")
        .fetch_one(&db.pool)
        .await
        .expect("workers can be counted");
    assert_eq!(workers, 0);
}

#[tokio::test]
async fn what_a_fenced_worker_has_started_shows_and_it_gets_nothing_more() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("a")]).await;
    let worker = worker_of(&db.pool, "charge", "orders").await;
    for _ in 0..3 {
        start(&db.pool, "orders", json!({})).await;
    }
    assert_eq!(claim(&db.pool, worker, 2).await.len(), 2);
    assert_eq!(state_of(&db.pool, worker).await, ("running".to_owned(), 2));
    fence(&db.pool, &["charge"], None).await.expect("fenced");
    assert_eq!(state_of(&db.pool, worker).await, ("draining".to_owned(), 2));
    assert_eq!(claim(&db.pool, worker, 2).await, []);
    assert_eq!(
        heartbeats(&db.pool, &[worker]).await.expect("alive"),
        [(worker, true, Some("fenced".to_owned()))]
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn workers_that_have_stopped_stay_as_they_were() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[]).await;
    let stopped = worker_of(&db.pool, "charge", "orders").await;
    super::mark_worker_stopped::stop(&db.pool, stopped).await;
    // One that was never heard of again may still be there, and hear of it.
    let silent = worker_of(&db.pool, "charge", "orders").await;
    sqlx::query("update pgflow.workers set last_heartbeat_at = now() - interval '1 day' where worker_id = $1")
        .bind(silent)
        .execute(&db.pool)
        .await
        .expect("time can pass");
    fence(&db.pool, &["charge"], None).await.expect("fenced");
    assert_eq!(
        told_to_stop(&db.pool, &[stopped, silent]).await,
        [None, Some("fenced".to_owned())]
    );
}

#[tokio::test]
async fn a_row_by_hand_can_not_contradict_its_fence() {
    let db = TestDb::new().await;
    track(&db.pool, "charge").await;
    for (change, constraint) in [
        ("fenced_at = now()", "fence_records_what_was"),
        ("recorded_enabled = true", "fence_records_what_was"),
        (
            "fenced_at = now(), recorded_enabled = true",
            "fenced_is_disabled",
        ),
        (
            "fenced_at = now(), enabled = false, disabled_at = now(), recorded_enabled = false",
            "recorded_disabled_has_a_time",
        ),
    ] {
        let query = format!("update pgflow.worker_functions set {change}");
        let changed = sqlx::query(sqlx::AssertSqlSafe(query))
            .execute(&db.pool)
            .await;
        assert_eq!(
            raised(changed),
            format!(
                "23514: new row for relation \"worker_functions\" violates check constraint \"{constraint}\""
            )
        );
    }
}
