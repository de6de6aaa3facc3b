//! Notifications of work: who is notified when, and when nobody is. `throttle` has how often.

mod throttle;

use serde_json::json;
use sqlx::AssertSqlSafe;
use sqlx::postgres::PgPool;

use crate::support::TestDb;
use crate::support::events::set_event_level;
use crate::support::flows::{
    claim, claim_one, complete, define, define_with_step_queues, fail, start, step, step_worker,
};
use crate::support::invariants::assert_invariants;
use crate::support::operations::Hints;
use crate::support::rows::raised;
use crate::support::runs::{
    Failure, Item, age, claim_all, complete_batch, database_with, fail_for_good, requeue, try_fail,
};

async fn execute(pool: &PgPool, statement: &'static str) {
    let done = sqlx::raw_sql(statement).execute(pool).await;
    done.unwrap_or_else(|error| panic!("{statement}: {error}"));
}

/// The queues whose notifications are throttled.
async fn known(pool: &PgPool) -> Vec<String> {
    sqlx::query_scalar("select queue_name from pgflow.wakeups order by queue_name collate \"C\"")
        .fetch_all(pool)
        .await
        .expect("queues can be read")
}

#[tokio::test]
async fn a_start_notifies_each_queue_of_a_root_once() {
    let db = TestDb::new().await;
    let steps = [
        step("One"),
        step("each").map(),
        step("after").deps(&["One"]),
    ];
    define(&db.pool, "Plain", &steps).await;
    define_with_step_queues(&db.pool, "Orders", &steps).await;
    let mut hints = Hints::listen(&db.pool).await;
    start(&db.pool, "Plain", json!(vec![1; 100])).await;
    assert_eq!(hints.since_last(&db.pool).await, ["plain"]);
    start(&db.pool, "Orders", json!(vec![1; 100])).await;
    let mut queues = hints.since_last(&db.pool).await;
    queues.sort();
    assert_eq!(queues, ["orders__each", "orders__one"]);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_completion_notifies_of_what_it_makes_ready() {
    let db = TestDb::new().await;
    let steps = [
        step("list"),
        step("each").map().deps(&["list"]),
        step("side").deps(&["list"]),
        step("last").deps(&["each"]),
    ];
    define_with_step_queues(&db.pool, "f", &steps).await;
    let mut hints = Hints::listen(&db.pool).await;
    let [lister, each, closer] = [
        step_worker(&db.pool, "f", "list").await,
        step_worker(&db.pool, "f", "each").await,
        step_worker(&db.pool, "f", "last").await,
    ];
    start(&db.pool, "f", json!({})).await;
    assert_eq!(hints.since_last(&db.pool).await, ["f__list"]);
    let task = claim_one(&db.pool, lister).await;
    assert_eq!(hints.since_last(&db.pool).await, [] as [&str; 0]);
    // One queue, one notification, however many elements.
    complete(&db.pool, &task, json!(vec![1; 50])).await;
    let mut queues = hints.since_last(&db.pool).await;
    queues.sort();
    assert_eq!(queues, ["f__each", "f__side"]);
    let mut tasks = claim(&db.pool, each, 50).await;
    let final_task = tasks.pop().expect("fifty tasks");
    for task in &tasks {
        complete(&db.pool, task, json!(1)).await;
    }
    assert_eq!(hints.since_last(&db.pool).await, [] as [&str; 0]);
    complete(&db.pool, &final_task, json!(1)).await;
    assert_eq!(hints.since_last(&db.pool).await, ["f__last"]);
    let task = claim_one(&db.pool, closer).await;
    complete(&db.pool, &task, json!(1)).await;
    assert_eq!(hints.since_last(&db.pool).await, [] as [&str; 0]);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_batch_that_makes_many_steps_ready_notifies_their_queue_once() {
    let (db, worker) = database_with(&[step("a"), step("b").deps(&["a"])]).await;
    let mut hints = Hints::listen(&db.pool).await;
    for _ in 0..10 {
        start(&db.pool, "f", json!({})).await;
    }
    let tasks = claim_all(&db.pool, worker).await;
    hints.since_last(&db.pool).await;
    let items: Vec<Item> = tasks.iter().map(|t| Item::of(t, json!(1))).collect();
    complete_batch(&db.pool, &items).await;
    assert_eq!(hints.since_last(&db.pool).await, ["f"]);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_skip_that_lets_others_start_notifies() {
    let (db, worker) = database_with(&[
        step("a").when_exhausted("skip"),
        step("b").deps(&["a"]),
        step("c"),
    ])
    .await;
    let mut hints = Hints::listen(&db.pool).await;
    start(&db.pool, "f", json!({})).await;
    hints.since_last(&db.pool).await;
    let task = claim_one(&db.pool, worker).await;
    fail_for_good(&db.pool, &task, "no").await;
    assert_eq!(hints.since_last(&db.pool).await, ["f"]);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn what_is_given_back_or_recovered_notifies() {
    let (db, worker) = database_with(&[step("a"), step("b")]).await;
    let mut hints = Hints::listen(&db.pool).await;
    let run = start(&db.pool, "f", json!({})).await;
    let tasks = claim(&db.pool, worker, 2).await;
    hints.since_last(&db.pool).await;
    let release = "select pgflow.release_tasks($1, array[$2, $2], '{a,b}', '{0,0}', '{1,1}')";
    let released: i32 = sqlx::query_scalar(release)
        .bind(worker)
        .bind(run)
        .fetch_one(&db.pool)
        .await
        .expect("given back");
    assert_eq!(released, 2);
    assert_eq!(hints.since_last(&db.pool).await, ["f"]);
    // Nothing was left to return, and so nothing to tell.
    let released: i32 = sqlx::query_scalar(release)
        .bind(worker)
        .bind(run)
        .fetch_one(&db.pool)
        .await
        .expect("nothing given back");
    assert_eq!(released, 0);
    assert_eq!(hints.since_last(&db.pool).await, [] as [&str; 0]);

    assert_eq!(claim(&db.pool, worker, 2).await.len(), tasks.len());
    assert_eq!(requeue(&db.pool).await, 0);
    assert_eq!(hints.since_last(&db.pool).await, [] as [&str; 0]);
    for step in ["a", "b"] {
        age(&db.pool, run, step, 1000).await;
    }
    assert_eq!(requeue(&db.pool).await, 2);
    assert_eq!(hints.since_last(&db.pool).await, ["f"]);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn what_nobody_can_take_yet_notifies_nobody() {
    let (db, worker) = database_with(&[
        step("a").base_delay(60).max_attempts(9),
        step("late").start_delay(60),
        step("later").start_delay(60).deps(&["a"]),
    ])
    .await;
    let mut hints = Hints::listen(&db.pool).await;
    start(&db.pool, "f", json!({})).await;
    assert_eq!(hints.since_last(&db.pool).await, ["f"]);
    let task = claim_one(&db.pool, worker).await;
    assert_eq!(fail(&db.pool, &task, "again").await, "queued");
    crate::support::rows::show_all(&db.pool, "f").await;
    let tasks = claim_all(&db.pool, worker).await;
    let task = crate::support::runs::of_step(&tasks, "a");
    let failure = Failure {
        attempt: Some(task.attempt),
        retry_delay: Some("30"),
        ..Failure::default()
    };
    let failed = try_fail(&db.pool, task, failure).await;
    assert_eq!(failed.expect("failed"), ["queued"]);
    crate::support::rows::show_all(&db.pool, "f").await;
    let task = claim_one(&db.pool, worker).await;
    assert_eq!(complete(&db.pool, &task, json!(1)).await, "completed");
    assert_eq!(hints.since_last(&db.pool).await, [] as [&str; 0]);

    define(&db.pool, "delayed", &[step("a").start_delay(1)]).await;
    start(&db.pool, "delayed", json!({})).await;
    assert_eq!(hints.since_last(&db.pool).await, [] as [&str; 0]);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn the_same_run_again_an_empty_map_and_a_failed_run_notify_nobody() {
    let (db, worker) = database_with(&[step("each").map(), step("last").deps(&["each"])]).await;
    let mut hints = Hints::listen(&db.pool).await;
    let run = start(&db.pool, "f", json!([1, 2])).await;
    assert_eq!(hints.since_last(&db.pool).await, ["f"]);
    sqlx::query("select pgflow.start_flow('f', '[1, 2]', $1)")
        .bind(run)
        .execute(&db.pool)
        .await
        .expect("it exists");
    let task = claim_one(&db.pool, worker).await;
    fail_for_good(&db.pool, &task, "no").await;
    define(&db.pool, "maps", &[step("each").map()]).await;
    start(&db.pool, "maps", json!([])).await;
    assert_eq!(hints.since_last(&db.pool).await, [] as [&str; 0]);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn the_event_level_has_no_influence() {
    let (db, worker) = database_with(&[step("a"), step("b").deps(&["a"])]).await;
    let mut hints = Hints::listen(&db.pool).await;
    for level in ["off", "runs", "all"] {
        set_event_level(&db.pool, level).await;
        start(&db.pool, "f", json!({})).await;
        assert_eq!(hints.since_last(&db.pool).await, ["f"], "{level}");
        let task = claim_one(&db.pool, worker).await;
        complete(&db.pool, &task, json!(1)).await;
        assert_eq!(hints.since_last(&db.pool).await, ["f"], "{level}");
        let task = claim_one(&db.pool, worker).await;
        complete(&db.pool, &task, json!(1)).await;
    }
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn an_installation_without_wakeups_is_silent() {
    let (db, worker) = database_with(&[step("a"), step("b").deps(&["a"])]).await;
    let mut hints = Hints::listen(&db.pool).await;
    execute(&db.pool, "update pgflow.installation set wakeups = false").await;
    start(&db.pool, "f", json!({})).await;
    let task = claim_one(&db.pool, worker).await;
    complete(&db.pool, &task, json!(1)).await;
    assert_eq!(hints.queues(&db.pool).await, [] as [&str; 0]);
    let silent: bool = sqlx::query_scalar("select notified_at = '-infinity' from pgflow.wakeups")
        .fetch_one(&db.pool)
        .await
        .expect("one queue");
    assert!(silent, "nor is anything written");
    execute(&db.pool, "update pgflow.installation set wakeups = true").await;
    start(&db.pool, "f", json!({})).await;
    assert_eq!(hints.queues(&db.pool).await, ["f"]);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn two_phase_commit_needs_wakeups_to_be_off() {
    let (db, worker) = database_with(&[step("a")]).await;
    execute(
        &db.pool,
        "update pgflow.installation set event_level = 'off'",
    )
    .await;
    let prepare = async |name: &str| -> sqlx::Result<()> {
        let mut session = db.pool.acquire().await.expect("a session");
        for statement in [
            "begin".to_owned(),
            "select pgflow.start_flow('f', '{}')".to_owned(),
            format!("prepare transaction '{name}'"),
        ] {
            let done = sqlx::raw_sql(AssertSqlSafe(statement))
                .execute(&mut *session)
                .await;
            if let Err(error) = done {
                session.close().await.expect("closed");
                return Err(error);
            }
        }
        Ok(())
    };
    // What is prepared belongs to the whole server.
    let name = format!("{}_run", db.name);
    assert_eq!(
        raised(prepare(&name).await),
        "0A000: cannot PREPARE a transaction that has executed LISTEN, UNLISTEN, or NOTIFY"
    );
    execute(&db.pool, "update pgflow.installation set wakeups = false").await;
    prepare(&name).await.expect("prepared");
    assert_eq!(claim(&db.pool, worker, 1).await, []);
    let commit = format!("commit prepared '{name}'");
    let done = sqlx::raw_sql(AssertSqlSafe(commit)).execute(&db.pool).await;
    done.expect("committed");
    assert_eq!(claim(&db.pool, worker, 9).await.len(), 1);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn the_row_of_a_queue_comes_and_goes_with_its_flow() {
    let db = TestDb::new().await;
    define(&db.pool, "Plain", &[step("a")]).await;
    define(&db.pool, "empty", &[]).await;
    define_with_step_queues(&db.pool, "Orders", &[step("A"), step("b").deps(&["A"])]).await;
    let all = ["empty", "orders__a", "orders__b", "plain"];
    assert_eq!(known(&db.pool).await, all);
    execute(&db.pool, "select pgflow.delete_flow_and_data('Orders')").await;
    assert_eq!(known(&db.pool).await, ["empty", "plain"]);
    execute(&db.pool, "select pgflow.delete_flow_and_data('Plain')").await;
    execute(&db.pool, "select pgflow.delete_flow_and_data('empty')").await;
    assert_eq!(known(&db.pool).await, [] as [&str; 0]);
    define_with_step_queues(&db.pool, "Orders", &[step("A"), step("b").deps(&["A"])]).await;
    assert_eq!(known(&db.pool).await, ["orders__a", "orders__b"]);
}

#[tokio::test]
async fn the_row_of_a_queue_that_somebody_dropped_goes_with_its_flow() {
    let db = TestDb::new().await;
    define_with_step_queues(&db.pool, "orders", &[step("a"), step("b")]).await;
    define(&db.pool, "plain", &[step("a")]).await;
    execute(&db.pool, "select pgmq.drop_queue('orders__a')").await;
    execute(&db.pool, "select pgmq.drop_queue('plain')").await;
    execute(&db.pool, "select pgflow.delete_flow_and_data('orders')").await;
    assert_eq!(known(&db.pool).await, ["plain"]);
    // Another flow uses the name of the queue that is gone.
    define_with_step_queues(&db.pool, "other", &[step("a")]).await;
    execute(
        &db.pool,
        "update pgflow.steps set queue_name = 'plain' where flow_slug = 'other'",
    )
    .await;
    execute(&db.pool, "select pgflow.delete_flow_and_data('plain')").await;
    assert_eq!(known(&db.pool).await, ["other__a", "plain"]);
}

#[tokio::test]
async fn without_its_row_a_queue_is_notified_each_time() {
    let (db, _) = database_with(&[step("a")]).await;
    let mut hints = Hints::listen(&db.pool).await;
    execute(&db.pool, "delete from pgflow.wakeups").await;
    for _ in 0..3 {
        start(&db.pool, "f", json!({})).await;
    }
    assert_eq!(hints.queues(&db.pool).await, ["f", "f", "f"]);
    assert_invariants(&db.pool).await;
}
