//! The cost of many runs together: as many rows as they have, and otherwise the cost of one run.

use serde_json::{Value, json};
use sqlx::{Connection, PgConnection};
use uuid::Uuid;

use super::{start_many, start_many_as, try_start_many};
use crate::support::TestDb;
use crate::support::events::{Events, describe};
use crate::support::flows::{define, define_with_step_queues, start, step};
use crate::support::invariants::assert_invariants;
use crate::support::operations::Hints;

/// The cost of a start: the calls of each function, and the inserts and updates by table.
/// Notifications, which depend on the time, are omitted.
#[derive(Debug)]
struct Cost {
    calls: Vec<(String, i64)>,
    written: Vec<(String, i64, i64)>,
    /// Of the table of which the most was read.
    read: i64,
}

impl Cost {
    /// Removes the number of created ids, which is one for each run, and returns it.
    fn take_new_ids(&mut self) -> i64 {
        let is_new_id = |(name, _): &(String, i64)| name == "pgflow._new_run_id";
        let place = self.calls.iter().position(is_new_id);
        self.calls.remove(place.expect("ids are made")).1
    }
}

async fn cost_of(db: &TestDb, inputs: Vec<Value>) -> Cost {
    // A session of its own: the counts are those of all that a session did since it last reported
    // them.
    let mut session = PgConnection::connect(&db.url).await.expect("a session");
    sqlx::query("set track_functions = 'all'")
        .execute(&mut session)
        .await
        .expect("functions can be counted");
    let mut session = session.begin().await.expect("a transaction");
    start_many(&mut *session, "orders", inputs).await;
    let calls = sqlx::query_as(
        "select format('%s.%s', schemaname, funcname), calls from pg_stat_xact_user_functions
         where schemaname in ('pgflow', 'pgmq') order by 1",
    )
    .fetch_all(&mut *session)
    .await
    .expect("statistics can be read");
    let written = sqlx::query_as(
        "select relname::text, n_tup_ins, n_tup_upd from pg_stat_xact_user_tables
         where schemaname in ('pgflow', 'pgmq') and relname <> 'wakeups' and n_tup_ins + n_tup_upd > 0 order by 1",
    )
    .fetch_all(&mut *session)
    .await
    .expect("statistics can be read");
    let read = sqlx::query_scalar(
        "select max(coalesce(idx_tup_fetch, 0) + seq_tup_read)::bigint from pg_stat_xact_user_tables
         where schemaname in ('pgflow', 'pgmq')",
    )
    .fetch_one(&mut *session)
    .await
    .expect("statistics can be read");
    session.commit().await.expect("the runs are kept");
    Cost {
        calls,
        written,
        read,
    }
}

/// The number of calls is that of statements: each function that is called runs its own for all
/// runs together.
#[tokio::test]
async fn a_thousand_runs_take_as_many_calls_as_one() {
    let db = TestDb::new().await;
    let steps = [
        step("each").map(),
        step("met").forbidden(json!({"never": 1})),
        step("next").deps(&["each"]).map(),
        step("last").deps(&["next", "met"]),
    ];
    define(&db.pool, "orders", &steps).await;
    let mut one = cost_of(&db, vec![json!([1, 2])]).await;
    let mut many = cost_of(&db, vec![json!([1, 2]); 1000]).await;
    assert_eq!((one.take_new_ids(), many.take_new_ids()), (1, 1000));
    for function in ["pgflow.start_flows", "pgflow._resolve_conditions"] {
        assert!(one.calls.contains(&(function.to_owned(), 1)), "{one:?}");
    }
    assert_eq!(many.calls, one.calls);

    // Of the run, its four steps, and the three tasks of its roots.
    let of_one = [
        ("q_orders", 3, 0),
        ("runs", 1, 0),
        ("step_states", 4, 2),
        ("step_tasks", 3, 0),
    ];
    for (cost, runs) in [(&one, 1), (&many, 1000)] {
        let expected = of_one
            .map(|(table, inserted, updated)| (table.to_owned(), inserted * runs, updated * runs));
        assert_eq!(cost.written, expected);
    }
    assert!(
        many.read <= 1000 * one.read,
        "{} rows of one table were read for 1,000 runs, and {} for one",
        many.read,
        one.read
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn maps_over_nothing_and_flows_without_steps_take_as_many_calls_as_one() {
    for steps in [
        [step("a").map(), step("b").deps(&["a"]).map()].as_slice(),
        &[],
    ] {
        let db = TestDb::new().await;
        define(&db.pool, "orders", steps).await;
        let mut one = cost_of(&db, vec![json!([])]).await;
        let mut many = cost_of(&db, vec![json!([]); 1000]).await;
        assert_eq!((one.take_new_ids(), many.take_new_ids()), (1, 1000));
        assert_eq!(many.calls, one.calls);
        assert_invariants(&db.pool).await;
    }
}

#[tokio::test]
async fn each_queue_is_notified_once() {
    let db = TestDb::new().await;
    let steps = [
        step("One"),
        step("each").map(),
        step("after").deps(&["One"]),
    ];
    define(&db.pool, "Plain", &steps).await;
    define_with_step_queues(&db.pool, "Orders", &steps).await;
    let mut hints = Hints::listen(&db.pool).await;
    // Calls for one queue within 20 ms would share a notification; this is one call.
    let inputs = || vec![json!([1, 2]); 100];
    start_many(&db.pool, "Plain", inputs()).await;
    assert_eq!(hints.since_last(&db.pool).await, ["plain"]);
    start_many(&db.pool, "Orders", inputs()).await;
    let mut queues = hints.since_last(&db.pool).await;
    queues.sort();
    assert_eq!(queues, ["orders__each", "orders__one"]);
    // What exists has its tasks already.
    let again = [(Uuid::now_v7(), json!([]))];
    start_many_as(&db.pool, "Plain", &again).await;
    assert_eq!(hints.since_last(&db.pool).await, ["plain"]);
    start_many_as(&db.pool, "Plain", &again).await;
    assert_eq!(hints.since_last(&db.pool).await, [] as [&str; 0]);
    assert_invariants(&db.pool).await;
}

/// The type of each event of a run, in their order.
fn events_of(payloads: &[Value], run: Uuid) -> Vec<String> {
    let of_run = payloads.iter().filter(|p| p["run_id"] == json!(run));
    of_run.map(describe).collect()
}

#[tokio::test]
async fn each_run_is_told_as_if_it_were_alone_and_those_that_exist_are_not() {
    let db = TestDb::new().await;
    let steps = [step("a").map(), step("b").deps(&["a"]).map()];
    define(&db.pool, "orders", &steps).await;
    define(&db.pool, "empty", &[]).await;
    let existing = start(&db.pool, "orders", json!([])).await;
    let mut events = Events::at_level(&db.pool, "all").await;

    let [working, ended] = [Uuid::now_v7(), Uuid::now_v7()];
    let runs = [
        (working, json!([1])),
        (existing, json!([])),
        (ended, json!([])),
    ];
    start_many_as(&db.pool, "orders", &runs).await;
    let told = events.payloads(&db.pool).await;
    assert_eq!(events_of(&told, working), ["run:started", "step:started a"]);
    assert_eq!(
        events_of(&told, ended),
        [
            "run:started",
            "step:completed a",
            "step:completed b",
            "run:completed"
        ]
    );
    assert_eq!(told.len(), 6, "{told:?}");

    let without_steps = start_many(&db.pool, "empty", [json!(1), json!(2)]).await;
    let told = events.payloads(&db.pool).await;
    for run in without_steps {
        assert_eq!(events_of(&told, run), ["run:started", "run:completed"]);
    }
    assert_eq!(told.len(), 4, "{told:?}");

    // A refusal tells nothing.
    let inputs = [Some(json!([])), None];
    let refused = try_start_many(&db.pool, "orders", &inputs, None).await;
    refused.expect_err("one has no input");
    assert_eq!(events.types(&db.pool).await, "");
    assert_invariants(&db.pool).await;
}
