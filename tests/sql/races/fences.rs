//! A fence beside workers that register, claim and beat: none slips through, and none is waited for
//! without end.

use serde_json::json;
use sqlx::postgres::{PgExecutor, PgPool};
use sqlx::{AssertSqlSafe, PgTransaction};
use uuid::Uuid;

use crate::support::TestDb;
use crate::support::flows::{claim, define, raw_claim, start, step};
use crate::support::invariants::assert_invariants;
use crate::support::operations::{
    disable, fence, heartbeats, standing, told_to_stop, track, try_register, unfence, worker_of,
};
use crate::support::rows::raised;
use crate::support::sessions::{holding, until_blocked, without_waiting};

async fn with_function() -> TestDb {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("a")]).await;
    track(&db.pool, "charge").await;
    db
}

async fn fence_charge(db: impl PgExecutor<'_>) -> sqlx::Result<Vec<String>> {
    fence(db, &["charge"], Some("deploy")).await
}

/// Returns the reason why the workers of the function were asked to stop.
async fn told(pool: &PgPool, worker: Uuid) -> Option<String> {
    told_to_stop(pool, &[worker]).await.remove(0)
}

#[tokio::test]
async fn a_fence_waits_for_a_worker_that_registers_and_tells_it_to_stop() {
    let db = with_function().await;
    let mut registering = db.pool.begin().await.expect("a first session");
    let worker = try_register(&mut *registering, "charge", "orders").await;
    let worker = worker.expect("registered");
    let fencing = until_blocked(&db.pool, |mut second| async move {
        fence_charge(&mut *second).await
    })
    .await;
    registering.commit().await.expect("committed");
    assert_eq!(
        fencing.await.expect("answered").expect("fenced"),
        ["charge"]
    );
    assert_eq!(
        told(&db.pool, worker).await,
        Some("fenced: deploy".to_owned())
    );
}

#[tokio::test]
async fn a_worker_that_waited_for_a_fence_does_not_register() {
    let db = with_function().await;
    let mut fencing = db.pool.begin().await.expect("a first session");
    fence_charge(&mut *fencing).await.expect("fenced");
    let registering = until_blocked(&db.pool, |mut second| async move {
        try_register(&mut *second, "charge", "orders").await
    })
    .await;
    fencing.commit().await.expect("committed");
    let refused = raised(registering.await.expect("answered"));
    assert!(refused.starts_with("PF007: "), "{refused}");
    assert!(refused.ends_with(": fenced: deploy"), "{refused}");
}

#[tokio::test]
async fn a_worker_that_waited_for_a_fence_that_was_undone_registers() {
    let db = with_function().await;
    let mut fencing = db.pool.begin().await.expect("a first session");
    fence_charge(&mut *fencing).await.expect("fenced");
    let registering = until_blocked(&db.pool, |mut second| async move {
        try_register(&mut *second, "charge", "orders").await
    })
    .await;
    fencing.rollback().await.expect("undone");
    let worker = registering.await.expect("answered").expect("registered");
    assert_eq!(told(&db.pool, worker).await, None);
}

#[tokio::test]
async fn a_claim_under_way_is_not_waited_for_and_shows_once_it_is_there() {
    let db = with_function().await;
    let worker = worker_of(&db.pool, "charge", "orders").await;
    for _ in 0..3 {
        start(&db.pool, "orders", json!({})).await;
    }
    let mut claiming = db.pool.begin().await.expect("a first session");
    assert_eq!(claim(&mut *claiming, worker, 2).await.len(), 2);
    without_waiting(fence_charge(&db.pool))
        .await
        .expect("fenced");
    let status = async || -> (String, i64) {
        sqlx::query_as("select state, started_tasks from pgflow.worker_status")
            .fetch_one(&db.pool)
            .await
            .expect("one worker")
    };
    // What keeps a deployment waiting until then is that the worker lives.
    assert_eq!(status().await, ("draining".to_owned(), 0));
    claiming.commit().await.expect("committed");
    assert_eq!(status().await, ("draining".to_owned(), 2));
    assert_eq!(claim(&db.pool, worker, 2).await, []);
    assert_invariants(&db.pool).await;
}

/// A worker of the function, and a message that nobody can work on.
async fn poisoned() -> (TestDb, Uuid) {
    let db = with_function().await;
    let worker = worker_of(&db.pool, "charge", "orders").await;
    sqlx::query("select pgmq.send('orders', '{}')")
        .execute(&db.pool)
        .await
        .expect("sent");
    (db, worker)
}

const POISON: &str =
    "disabled: unsupported work in queue \"orders\": message 1: no task has this message";

#[tokio::test]
async fn poison_that_meets_a_fence_is_left_for_whoever_claims_next() {
    let (db, worker) = poisoned().await;
    let mut fencing = db.pool.begin().await.expect("a first session");
    fence_charge(&mut *fencing).await.expect("fenced");
    let met = without_waiting(raw_claim(&db.pool, worker, 1)).await;
    assert!(met.is_empty(), "the function can't be disabled yet");
    fencing.commit().await.expect("committed");
    assert_eq!(
        standing(&db.pool, "charge").await,
        "fenced: deploy (then enabled)"
    );
    assert_eq!(raw_claim(&db.pool, worker, 1).await.len(), 0, "deprecated");
    unfence(&db.pool, &["charge"]).await.expect("unfenced");
    let next = worker_of(&db.pool, "charge", "orders").await;
    let fatal = raw_claim(&db.pool, next, 1).await;
    assert_eq!(fatal.len(), 1, "a fatal answer, as nothing hid the message");
    assert_eq!(standing(&db.pool, "charge").await, POISON);
    assert_invariants(&db.pool).await;
}

/// A claim waits for nobody. If it waited for the function with its messages in its hand, these
/// three would wait in a circle.
#[tokio::test]
async fn a_fence_a_deletion_and_poison_do_not_wait_in_a_circle() {
    let (db, worker) = poisoned().await;
    let mut fencing = holding(
        &db.pool,
        "select from pgflow.worker_functions where function_name = 'charge' for no key update",
    )
    .await;
    let mut claiming = db.pool.begin().await.expect("a session");
    let met = without_waiting(raw_claim(&mut *claiming, worker, 1)).await;
    assert!(met.is_empty(), "the function can't be disabled yet");
    let deleting = until_blocked(&db.pool, |mut third| async move {
        sqlx::query("select pgflow.delete_flow_and_data('orders')")
            .execute(&mut *third)
            .await
    })
    .await;
    claiming.commit().await.expect("committed");
    deleting.await.expect("answered").expect("deleted");
    let fenced = without_waiting(fence_charge(&mut *fencing)).await;
    assert_eq!(fenced.expect("fenced"), ["charge"]);
    fencing.commit().await.expect("committed");
    assert_invariants(&db.pool).await;
}

/// A worker's row may outlive its function's.
#[tokio::test]
async fn poison_is_told_when_there_is_no_function_to_disable() {
    let (db, worker) = poisoned().await;
    sqlx::query("delete from pgflow.worker_functions")
        .execute(&db.pool)
        .await
        .expect("removed by hand");
    assert_eq!(raw_claim(&db.pool, worker, 1).await.len(), 1);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_fence_that_waited_for_poison_records_it() {
    let (db, worker) = poisoned().await;
    let mut claiming = db.pool.begin().await.expect("a first session");
    assert_eq!(raw_claim(&mut *claiming, worker, 1).await.len(), 1);
    let fencing = until_blocked(&db.pool, |mut second| async move {
        fence_charge(&mut *second).await
    })
    .await;
    claiming.commit().await.expect("committed");
    fencing.await.expect("answered").expect("fenced");
    assert_eq!(
        standing(&db.pool, "charge").await,
        format!("fenced: deploy (then {POISON})")
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn what_is_disabled_while_its_fence_ends_stays_disabled() {
    let db = with_function().await;
    fence_charge(&db.pool).await.expect("fenced");
    let mut ending = db.pool.begin().await.expect("a first session");
    unfence(&mut *ending, &["charge"]).await.expect("unfenced");
    let disabling = until_blocked(&db.pool, |mut second| async move {
        disable(&mut *second, "charge", Some("broken")).await;
    })
    .await;
    ending.commit().await.expect("committed");
    disabling.await.expect("answered");
    assert_eq!(standing(&db.pool, "charge").await, "disabled: broken");
}

#[tokio::test]
async fn two_fences_of_one_set_in_two_orders_wait_for_each_other_once() {
    let db = with_function().await;
    for name in ["a", "b", "c"] {
        track(&db.pool, name).await;
    }
    // Whoever is the second holds none of them while it waits for the first.
    let first = holding(
        &db.pool,
        "select from pgflow.worker_functions where function_name = 'a' for update",
    )
    .await;
    let fencing = until_blocked(&db.pool, |mut second| async move {
        fence(&mut *second, &["c", "b", "a"], Some("one")).await
    })
    .await;
    let rest =
        "select from pgflow.worker_functions where function_name in ('b', 'c') for update nowait";
    let free = holding(&db.pool, rest).await;
    free.rollback().await.expect("given up");
    first.rollback().await.expect("given up");
    fencing.await.expect("answered").expect("fenced");
    fence(&db.pool, &["a", "c"], Some("two"))
        .await
        .expect("fenced");
    for name in ["a", "b", "c"] {
        assert_eq!(standing(&db.pool, name).await, "fenced: one (then enabled)");
    }
}

#[tokio::test]
async fn a_fence_waits_for_a_heartbeat_and_for_an_end() {
    let db = with_function().await;
    let [beating_one, stopping_one] = [
        worker_of(&db.pool, "charge", "orders").await,
        worker_of(&db.pool, "charge", "orders").await,
    ];
    let mut first = db.pool.begin().await.expect("a first session");
    heartbeats(&mut *first, &[beating_one])
        .await
        .expect("alive");
    sqlx::query("select pgflow.mark_worker_stopped($1)")
        .bind(stopping_one)
        .execute(&mut *first)
        .await
        .expect("stopped");
    let fencing = until_blocked(&db.pool, |mut second| async move {
        fence_charge(&mut *second).await
    })
    .await;
    first.commit().await.expect("committed");
    fencing.await.expect("answered").expect("fenced");
    assert_eq!(
        told_to_stop(&db.pool, &[beating_one, stopping_one]).await,
        [Some("fenced: deploy".to_owned()), None]
    );
}

/// A transaction that has looked at the workers already.
async fn looking(pool: &PgPool, level: &str) -> PgTransaction<'static> {
    let begin = AssertSqlSafe(format!("begin transaction isolation level {level}"));
    let mut transaction = pool.begin_with(begin).await.expect("a session");
    sqlx::query("select from pgflow.workers")
        .execute(&mut *transaction)
        .await
        .expect("workers can be read");
    transaction
}

#[tokio::test]
async fn who_can_not_see_the_newest_workers_tells_none_to_stop() {
    for level in ["repeatable read", "serializable"] {
        let db = with_function().await;
        for call in [
            "select pgflow.fence_worker_functions('{charge}')",
            "select pgflow.deprecate_workers('{charge}')",
        ] {
            let mut operator = looking(&db.pool, level).await;
            let worker = try_register(&db.pool, "charge", "orders").await;
            let worker = worker.expect("registered");
            assert_eq!(
                raised(sqlx::query(call).execute(&mut *operator).await),
                format!(
                    "PF011: workers can not be told to stop in a transaction of isolation level {level}"
                ),
                "{call}"
            );
            operator.rollback().await.expect("given up");
            assert_eq!(told(&db.pool, worker).await, None);
            assert_eq!(standing(&db.pool, "charge").await, "enabled");
        }
    }
}
