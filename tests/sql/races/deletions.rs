//! Deleting a flow, or old runs, beside everything that works on them. A deletion takes the locks
//! of a run before it touches a queue, as reports do, so neither waits for the other in a circle.

use serde_json::json;
use sqlx::postgres::{PgExecutor, PgPool};

use crate::support::TestDb;
use crate::support::flows::{claim, claim_one, define, drain, shape, start, step, worker};
use crate::support::invariants::assert_invariants;
use crate::support::rows::{count, raised};
use crate::support::runs::{Failure, Item, age, try_complete_batch, try_fail};
use crate::support::sessions::{holding, until_blocked, without_waiting};

async fn delete(db: impl PgExecutor<'_>) -> i64 {
    sqlx::query_scalar("select pgflow.delete_flow_and_data('orders')")
        .fetch_one(db)
        .await
        .expect("deleted")
}

async fn prune(db: impl PgExecutor<'_>) -> i32 {
    sqlx::query_scalar("select pgflow.prune_data_older_than('0')")
        .fetch_one(db)
        .await
        .expect("removed")
}

async fn ensure(db: impl PgExecutor<'_>) -> String {
    sqlx::query_scalar("select pgflow.ensure_flow_compiled('orders', $1) ->> 'status'")
        .bind(shape(&[step("a")]))
        .fetch_one(db)
        .await
        .expect("an answer")
}

async fn assert_nothing_is_left(pool: &PgPool) {
    for table in [
        "pgflow.flows",
        "pgflow.runs",
        "pgflow.step_tasks",
        "pgmq.meta",
    ] {
        assert_eq!(count(pool, table).await, 0, "{table}");
    }
}

#[tokio::test]
async fn a_compilation_waits_for_a_deletion_and_compiles_anew() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("old")]).await;
    let mut deleting = db.pool.begin().await.expect("a first session");
    delete(&mut *deleting).await;
    let compiling = until_blocked(
        &db.pool,
        |mut second| async move { ensure(&mut *second).await },
    )
    .await;
    deleting.commit().await.expect("committed");
    assert_eq!(compiling.await.expect("answered"), "compiled");
    assert_eq!(count(&db.pool, "pgmq.meta").await, 1);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_compilation_verifies_when_the_deletion_before_it_is_undone() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("a")]).await;
    let mut deleting = db.pool.begin().await.expect("a first session");
    delete(&mut *deleting).await;
    let compiling = until_blocked(
        &db.pool,
        |mut second| async move { ensure(&mut *second).await },
    )
    .await;
    deleting.rollback().await.expect("undone");
    assert_eq!(compiling.await.expect("answered"), "verified");
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_deletion_waits_for_a_compilation_and_deletes_what_it_stored() {
    let db = TestDb::new().await;
    let mut compiling = db.pool.begin().await.expect("a first session");
    assert_eq!(ensure(&mut *compiling).await, "compiled");
    let deleting = until_blocked(
        &db.pool,
        |mut second| async move { delete(&mut *second).await },
    )
    .await;
    compiling.commit().await.expect("committed");
    assert_eq!(deleting.await.expect("answered"), 0);
    assert_nothing_is_left(&db.pool).await;
}

#[tokio::test]
async fn a_run_that_starts_during_a_deletion_finds_no_flow() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("a")]).await;
    let mut deleting = db.pool.begin().await.expect("a first session");
    delete(&mut *deleting).await;
    let starting = until_blocked(&db.pool, |mut second| async move {
        sqlx::query("select pgflow.start_flow('orders', '{}')")
            .execute(&mut *second)
            .await
            .map(drop)
    })
    .await;
    deleting.commit().await.expect("committed");
    assert_eq!(
        raised(starting.await.expect("answered")),
        "PF001: flow \"orders\" is not defined in this database"
    );
    assert_nothing_is_left(&db.pool).await;
}

#[tokio::test]
async fn a_deletion_waits_for_a_run_that_is_being_started_and_takes_it_along() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("a")]).await;
    let mut starting = db.pool.begin().await.expect("a first session");
    start(&mut *starting, "orders", json!({})).await;
    let deleting = until_blocked(
        &db.pool,
        |mut second| async move { delete(&mut *second).await },
    )
    .await;
    starting.commit().await.expect("committed");
    assert_eq!(deleting.await.expect("answered"), 1);
    assert_nothing_is_left(&db.pool).await;
}

#[tokio::test]
async fn reports_that_wait_for_a_deletion_find_no_task() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("a"), step("b")]).await;
    start(&db.pool, "orders", json!({})).await;
    let worker = worker(&db.pool, "orders").await;
    let claimed = claim(&db.pool, worker, 2).await;
    let [a, b] = [claimed[0].clone(), claimed[1].clone()];
    let gone = format!("PF003: there is no task \"a\" [0] in run {}", a.run_id);
    let also_gone = format!("PF003: there is no task \"b\" [0] in run {}", a.run_id);

    let mut deleting = db.pool.begin().await.expect("a first session");
    delete(&mut *deleting).await;
    let completing = until_blocked(&db.pool, |mut second| async move {
        try_complete_batch(&mut *second, &[Item::of(&a, json!(1))]).await
    })
    .await;
    let failing = until_blocked(&db.pool, |mut third| async move {
        try_fail(&mut *third, &b, Failure::default()).await
    })
    .await;
    deleting.commit().await.expect("committed");
    assert_eq!(raised(completing.await.expect("answered")), gone);
    assert_eq!(raised(failing.await.expect("answered")), also_gone);
    assert_nothing_is_left(&db.pool).await;
}

#[tokio::test]
async fn a_deletion_waits_for_a_completion_that_goes_on_to_the_queue() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("a"), step("b").deps(&["a"])]).await;
    start(&db.pool, "orders", json!({})).await;
    let worker = worker(&db.pool, "orders").await;
    let a = claim_one(&db.pool, worker).await;
    let mut completing = db.pool.begin().await.expect("a first session");
    sqlx::query("select from pgflow.runs for no key update")
        .execute(&mut *completing)
        .await
        .expect("the run is locked, as a completion begins");
    let deleting = until_blocked(
        &db.pool,
        |mut second| async move { delete(&mut *second).await },
    )
    .await;
    // Archives a message and sends another one: the deletion must not hold the queue yet.
    let item = [Item::of(&a, json!(1))];
    let done = without_waiting(try_complete_batch(&mut *completing, &item)).await;
    assert_eq!(done.expect("no deadlock")[0].outcome, "completed");
    completing.commit().await.expect("committed");
    assert_eq!(deleting.await.expect("answered"), 1);
    assert_nothing_is_left(&db.pool).await;
}

#[tokio::test]
async fn a_deletion_waits_for_a_claim_and_the_claimed_task_goes_too() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("each").map()]).await;
    start(&db.pool, "orders", json!([0, 1])).await;
    let worker = worker(&db.pool, "orders").await;
    let mut claiming = db.pool.begin().await.expect("a first session");
    claim_one(&mut *claiming, worker).await;
    let deleting = until_blocked(
        &db.pool,
        |mut second| async move { delete(&mut *second).await },
    )
    .await;
    // The claim's session goes on to the queue, while the deletion waits.
    let more = without_waiting(claim(&mut *claiming, worker, 1)).await;
    assert_eq!(more.len(), 1);
    claiming.commit().await.expect("committed");
    assert_eq!(deleting.await.expect("answered"), 1);
    assert_nothing_is_left(&db.pool).await;
}

#[tokio::test]
async fn recovery_leaves_a_flow_that_is_being_deleted_alone() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("a")]).await;
    let id = start(&db.pool, "orders", json!({})).await;
    let worker = worker(&db.pool, "orders").await;
    claim_one(&db.pool, worker).await;
    age(&db.pool, id, "a", 3600).await;
    let mut deleting = db.pool.begin().await.expect("a first session");
    delete(&mut *deleting).await;
    let recovered = without_waiting(crate::support::runs::requeue(&db.pool)).await;
    assert_eq!(recovered, 0);
    deleting.commit().await.expect("committed");
    assert_nothing_is_left(&db.pool).await;
}

#[tokio::test]
async fn two_prunes_at_once_share_the_runs_without_waiting() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("a")]).await;
    let worker = worker(&db.pool, "orders").await;
    for _ in 0..3 {
        start(&db.pool, "orders", json!({})).await;
    }
    drain(&db.pool, worker, |_| json!(1)).await;
    let mut first = db.pool.begin().await.expect("a first session");
    let some: i32 = sqlx::query_scalar("select pgflow.prune_data_older_than('0', max_runs => 1)")
        .fetch_one(&mut *first)
        .await
        .expect("removed");
    assert_eq!(some, 1);
    assert_eq!(without_waiting(prune(&db.pool)).await, 2);
    first.commit().await.expect("committed");
    assert_eq!(count(&db.pool, "pgflow.runs").await, 0);
    assert_eq!(count(&db.pool, "pgmq.a_orders").await, 0);
}

#[tokio::test]
async fn a_late_report_that_waits_for_a_prune_finds_no_task() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("a").max_attempts(1), step("b")]).await;
    start(&db.pool, "orders", json!({})).await;
    let worker = worker(&db.pool, "orders").await;
    let claimed = claim(&db.pool, worker, 2).await;
    let failed = try_fail(&db.pool, &claimed[0], Failure::default()).await;
    assert_eq!(failed.expect("failed"), ["failed"]);
    let late = claimed[1].clone();
    let gone = format!("PF003: there is no task \"b\" [0] in run {}", late.run_id);

    let mut pruning = db.pool.begin().await.expect("a first session");
    assert_eq!(prune(&mut *pruning).await, 1);
    let completing = until_blocked(&db.pool, |mut second| async move {
        try_complete_batch(&mut *second, &[Item::of(&late, json!(1))]).await
    })
    .await;
    pruning.commit().await.expect("committed");
    assert_eq!(raised(completing.await.expect("answered")), gone);
    assert_eq!(count(&db.pool, "pgflow.step_tasks").await, 0);
}

#[tokio::test]
async fn a_prune_leaves_a_run_that_a_late_report_holds() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("a").max_attempts(1), step("b")]).await;
    start(&db.pool, "orders", json!({})).await;
    let worker = worker(&db.pool, "orders").await;
    let claimed = claim(&db.pool, worker, 2).await;
    let failed = try_fail(&db.pool, &claimed[0], Failure::default()).await;
    assert_eq!(failed.expect("failed"), ["failed"]);
    let mut reporting = db.pool.begin().await.expect("a first session");
    let item = [Item::of(&claimed[1], json!(1))];
    let late = try_complete_batch(&mut *reporting, &item).await;
    assert_eq!(late.expect("answered")[0].outcome, "stale");
    assert_eq!(without_waiting(prune(&db.pool)).await, 0);
    reporting.commit().await.expect("committed");
    assert_eq!(prune(&db.pool).await, 1);
}

/// A deletion holds the flow's workers, dead ones too, and waits for its runs, which a prune may
/// hold.
#[tokio::test]
async fn a_prune_leaves_dead_workers_that_a_deletion_holds() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("a")]).await;
    let worker = worker(&db.pool, "orders").await;
    start(&db.pool, "orders", json!({})).await;
    drain(&db.pool, worker, |_| json!(1)).await;
    sqlx::query("update pgflow.workers set last_heartbeat_at = now() - interval '2 days'")
        .execute(&db.pool)
        .await
        .expect("time can pass");
    let held = holding(&db.pool, "select from pgflow.workers for update").await;
    assert_eq!(without_waiting(prune(&db.pool)).await, 1);
    held.rollback().await.expect("the rows are let go");
    assert_eq!(count(&db.pool, "pgflow.workers").await, 1);
    assert_eq!(prune(&db.pool).await, 0);
    assert_eq!(count(&db.pool, "pgflow.workers").await, 0);
}

#[tokio::test]
async fn a_claim_that_waits_for_a_replacement_of_the_flow_gets_nothing_of_the_new_one() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("old")]).await;
    let worker = worker(&db.pool, "orders").await;
    let mut replacing = db.pool.begin().await.expect("a first session");
    delete(&mut *replacing).await;
    assert_eq!(ensure(&mut *replacing).await, "compiled");
    start(&mut *replacing, "orders", json!({})).await;
    let claiming = until_blocked(&db.pool, |mut second| async move {
        claim(&mut *second, worker, 1).await
    })
    .await;
    replacing.commit().await.expect("committed");
    assert_eq!(claiming.await.expect("answered"), []);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn who_looks_into_a_queue_and_waits_for_its_end_finds_it_gone() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("a")]).await;
    define(&db.pool, "other", &[]).await;
    let id = start(&db.pool, "orders", json!({})).await;
    let mut deleting = db.pool.begin().await.expect("a first session");
    delete(&mut *deleting).await;
    let coverage = until_blocked(&db.pool, |mut second| async move {
        sqlx::query_as::<_, (String, Option<i64>)>(
            "select flow_slug, waiting_messages from pgflow.coverage",
        )
        .fetch_all(&mut *second)
        .await
    })
    .await;
    let explaining = until_blocked(&db.pool, |mut second| async move {
        sqlx::query_scalar::<_, String>("select pgflow.explain_step($1, 'a') ->> 'reason'")
            .bind(id)
            .fetch_one(&mut *second)
            .await
    })
    .await;
    deleting.commit().await.expect("committed");
    // As it was when they began to look.
    let expected = [("orders", None), ("other", Some(0))];
    assert_eq!(
        coverage.await.expect("answered").expect("an answer"),
        expected.map(|(flow, waiting)| (flow.to_owned(), waiting))
    );
    assert_eq!(
        explaining.await.expect("answered").expect("an answer"),
        "message_missing"
    );
}

/// The last report changes the run's row twice, for which Postgres locks the flow's row: not for a
/// deletion that waits for the run.
#[tokio::test]
async fn a_report_that_ends_its_run_does_not_wait_for_a_deletion_that_waits_for_it() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("a")]).await;
    let worker = worker(&db.pool, "orders").await;
    start(&db.pool, "orders", json!({})).await;
    let task = claim_one(&db.pool, worker).await;
    let held = holding(&db.pool, "select from pgflow.step_states for update").await;
    let reporting = until_blocked(&db.pool, |mut second| async move {
        try_complete_batch(&mut *second, &[Item::of(&task, json!(1))]).await
    })
    .await;
    let deleting = until_blocked(
        &db.pool,
        |mut third| async move { delete(&mut *third).await },
    )
    .await;
    held.rollback().await.expect("the step is let go");
    let reported = reporting.await.expect("answered").expect("no deadlock");
    assert_eq!(reported[0].outcome, "completed");
    assert_eq!(deleting.await.expect("answered"), 1);
    assert_nothing_is_left(&db.pool).await;
}
