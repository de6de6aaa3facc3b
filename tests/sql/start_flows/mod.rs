//! `start_flows`: many runs in one call. What a single start does, `start_flow` has; here is what
//! many have in common: their order, their ids, and that a refusal leaves none. `alike` has what
//! each run gets, `cost` what all of them cost.

mod alike;
mod cost;

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};
use sqlx::postgres::{PgExecutor, PgPool};
use uuid::{Uuid, Variant};

use super::stored::unchanged;
use crate::support::TestDb;
use crate::support::eventually;
use crate::support::flows::{define, drain, start, step, worker};
use crate::support::invariants::assert_invariants;
use crate::support::rows::{count, messages, raised, run};

/// Calls `start_flows`; returns the id and the input of each run, as they came. `None` among the
/// inputs is SQL NULL.
pub(super) async fn try_start_many(
    db: impl PgExecutor<'_>,
    flow: &str,
    inputs: &[Option<Value>],
    run_ids: Option<&[Option<Uuid>]>,
) -> sqlx::Result<Vec<(Uuid, Value)>> {
    sqlx::query_as("select run_id, input from pgflow.start_flows($1, $2, $3)")
        .bind(flow)
        .bind(inputs)
        .bind(run_ids)
        .fetch_all(db)
        .await
}

/// Starts a run for each input under a new id; returns the ids.
pub(super) async fn start_many(
    db: impl PgExecutor<'_>,
    flow: &str,
    inputs: impl IntoIterator<Item = Value>,
) -> Vec<Uuid> {
    let inputs: Vec<Option<Value>> = inputs.into_iter().map(Some).collect();
    let runs = try_start_many(db, flow, &inputs, None)
        .await
        .expect("the runs can be started");
    assert_eq!(runs.len(), inputs.len(), "one run for each input");
    runs.into_iter().map(|(id, _)| id).collect()
}

/// As [`try_start_many`], with an id for each input; the call must be accepted.
pub(super) async fn start_many_as(
    db: impl PgExecutor<'_>,
    flow: &str,
    runs: &[(Uuid, Value)],
) -> Vec<(Uuid, Value)> {
    let (ids, inputs): (Vec<_>, Vec<_>) = runs
        .iter()
        .map(|(id, input)| (Some(*id), Some(input.clone())))
        .unzip();
    try_start_many(db, flow, &inputs, Some(&ids))
        .await
        .expect("the runs can be started")
}

/// Returns the reason why a call with new ids is refused; asserts that it changed nothing.
async fn refusal(pool: &PgPool, flow: &str, inputs: &[Option<Value>]) -> String {
    raised(unchanged(pool, try_start_many(pool, flow, inputs, None)).await)
}

#[tokio::test]
async fn runs_return_in_the_order_of_their_inputs_whatever_their_ids() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("a")]).await;
    let inputs: Vec<Value> = (0..100).map(|n| json!({"n": n})).collect();
    let ids = start_many(&db.pool, "orders", inputs.clone()).await;
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), 100);
    for (id, input) in ids.iter().zip(&inputs) {
        let stored: Value = sqlx::query_scalar("select input from pgflow.runs where run_id = $1")
            .bind(id)
            .fetch_one(&db.pool)
            .await
            .expect("the run exists");
        assert_eq!(stored, *input);
    }

    // Ids that fall, and those of runs that exist among them.
    let mut runs: Vec<(Uuid, Value)> = (0..100)
        .map(|n| (Uuid::now_v7(), json!({"again": n})))
        .collect();
    runs.sort_by_key(|(id, _)| std::cmp::Reverse(*id));
    for n in [0, 50, 99] {
        runs[n] = (ids[n], inputs[n].clone());
    }
    assert_eq!(start_many_as(&db.pool, "orders", &runs).await, runs);
    assert_eq!(count(&db.pool, "pgflow.runs").await, 197);
    assert_eq!(messages(&db.pool, "orders").await.len(), 197);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn the_whole_row_of_each_run_returns_as_it_is_after_the_start() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("each").map()]).await;
    let rows: Vec<Value> = sqlx::query_scalar(
        "select to_jsonb(r) from pgflow.start_flows('orders', array['[]', '[1]']::jsonb[]) r",
    )
    .fetch_all(&db.pool)
    .await
    .expect("started");
    let stored: Vec<Value> = sqlx::query_scalar(
        "select to_jsonb(r) - 'has_end_steps' from pgflow.runs r order by jsonb_array_length(r.input)",
    )
    .fetch_all(&db.pool)
    .await
    .expect("runs can be read");
    assert_eq!(rows, stored);
    let [ended, begun] = [&rows[0], &rows[1]];
    assert_eq!(
        (&ended["status"], &ended["output"]),
        (&json!("completed"), &json!({"each": []}))
    );
    assert_eq!(
        (&begun["status"], &begun["output"]),
        (&json!("started"), &Value::Null)
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn ids_can_be_given_for_all_for_some_or_for_none() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("a")]).await;
    let inputs = vec![Some(json!(0)); 3];
    // The second one is of version 4: any id will do.
    let given = [Uuid::now_v7(), Uuid::from_u128(0x4000_8000 << 48)].map(Some);
    let [first, second] = given;
    for (ids, known) in [
        (None, [None, None, None]),
        (Some([None, None, None]), [None, None, None]),
        (Some([None, first, None]), [None, first, None]),
        (Some([second, None, first]), [second, None, first]),
    ] {
        let ids = ids.as_ref().map(<[_; 3]>::as_slice);
        let runs = try_start_many(&db.pool, "orders", &inputs, ids)
            .await
            .expect("started");
        for (place, known) in known.into_iter().enumerate() {
            let (id, _) = runs[place];
            match known {
                Some(known) => assert_eq!(id, known),
                None => assert!(!given.contains(&Some(id)), "{id}"),
            }
        }
    }
    // Twelve, of which one existed at its second time.
    assert_eq!(count(&db.pool, "pgflow.runs").await, 11);
    assert_invariants(&db.pool).await;
}

/// Milliseconds since 1970, as an id of version 7 has them.
fn milliseconds(id: Uuid) -> i64 {
    i64::try_from(id.as_u128() >> 80).expect("48 bits")
}

async fn now(pool: &PgPool) -> i64 {
    sqlx::query_scalar("select floor(extract(epoch from clock_timestamp()) * 1000)::bigint")
        .fetch_one(pool)
        .await
        .expect("Postgres tells the time")
}

#[tokio::test]
async fn new_ids_are_uuids_of_version_7_and_sort_by_time() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("a")]).await;
    let mut latest = Uuid::nil();
    for _ in 0..3 {
        // Within a millisecond, the order is that of random bits.
        let before = eventually(
            Duration::from_secs(20),
            "a millisecond passes",
            async || {
                let now = now(&db.pool).await;
                (now > milliseconds(latest)).then_some(now)
            },
        )
        .await;
        let ids = start_many(&db.pool, "orders", vec![json!(1); 200]).await;
        let after = now(&db.pool).await;
        for id in &ids {
            assert_eq!(id.get_version_num(), 7, "{id}");
            assert_eq!(id.get_variant(), Variant::RFC4122, "{id}");
            assert!((before..=after).contains(&milliseconds(*id)), "{id}");
            assert!(*id > latest, "{id} does not sort after {latest}");
        }
        let random: BTreeSet<u64> = ids.iter().map(|id| id.as_u64_pair().1).collect();
        assert_eq!(random.len(), ids.len());
        latest = ids.into_iter().max().expect("200 ids");
    }
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_run_that_exists_is_returned_as_it_is() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("each").map()]).await;
    let [ended, waiting] = [
        start(&db.pool, "orders", json!([1])).await,
        start(&db.pool, "orders", json!([2])).await,
    ];
    let worker = worker(&db.pool, "orders").await;
    sqlx::query("update pgmq.q_orders set vt = vt + interval '1 hour' where message ->> 'run_id' = $1::text")
        .bind(waiting)
        .execute(&db.pool)
        .await
        .expect("messages can be hidden");
    assert_eq!(drain(&db.pool, worker, |_| json!("done")).await, 1);
    assert_eq!(run(&db.pool, ended).await.status, "completed");

    let old = [Some(waiting), Some(ended)];
    let existing = [(waiting, json!([2])), (ended, json!([1]))];
    for inputs in [
        [Some(json!([2])), Some(json!([1]))],
        // No new run would be started with this.
        [None, None],
    ] {
        let again = try_start_many(&db.pool, "orders", &inputs, Some(&old));
        let again = unchanged(&db.pool, again).await;
        assert_eq!(again.expect("found"), existing);
    }
    // Beside new ones.
    let new = Uuid::now_v7();
    let inputs = [None, Some(json!([5, 6])), Some(json!([2.0]))];
    let ids = [Some(ended), Some(new), Some(waiting)];
    let runs = try_start_many(&db.pool, "orders", &inputs, Some(&ids)).await;
    let expected = [
        existing[1].clone(),
        (new, json!([5, 6])),
        existing[0].clone(),
    ];
    assert_eq!(runs.expect("started"), expected);
    assert_eq!(count(&db.pool, "pgflow.step_tasks").await, 4);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_run_that_exists_with_another_input_refuses_all() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("a")]).await;
    let taken = start(&db.pool, "orders", json!({"n": 1})).await;
    let [new, twice] = [Uuid::now_v7(), Uuid::now_v7()];
    for (runs, culprit) in [
        ([(new, json!(1)), (taken, json!({"n": 2}))], taken),
        ([(taken, json!(null)), (new, json!(1))], taken),
        // A call with the same id twice speaks of one run.
        ([(twice, json!(1)), (twice, json!(2))], twice),
    ] {
        let (ids, inputs): (Vec<_>, Vec<_>) = runs
            .into_iter()
            .map(|(id, input)| (Some(id), Some(input)))
            .unzip();
        assert_eq!(
            raised(try_start_many(&db.pool, "orders", &inputs, Some(&ids)).await),
            format!(
                "PF009: run {culprit} of flow \"orders\" exists, and was started with another input"
            )
        );
    }
    assert_eq!(count(&db.pool, "pgflow.runs").await, 1);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn the_same_id_twice_is_one_run() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("a"), step("b").deps(&["a"])]).await;
    let [twice, once] = [Uuid::now_v7(), Uuid::now_v7()];
    let runs = [(twice, json!(1)), (once, json!(2)), (twice, json!(1))];
    let started = start_many_as(&db.pool, "orders", &runs).await;
    let expected = [(twice, json!(1)), (once, json!(2)), (twice, json!(1))];
    assert_eq!(started, expected);
    assert_eq!(count(&db.pool, "pgflow.runs").await, 2);
    assert_eq!(count(&db.pool, "pgflow.step_states").await, 4);
    assert_eq!(messages(&db.pool, "orders").await.len(), 2);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn an_id_of_another_flow_refuses_all() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("a")]).await;
    define(&db.pool, "other", &[step("a")]).await;
    let [own, first, second] = [
        start(&db.pool, "orders", json!(1)).await,
        start(&db.pool, "other", json!(1)).await,
        start(&db.pool, "other", json!(1)).await,
    ];
    let inputs = vec![Some(json!(2)); 5];
    let ids = [None, Some(own), Some(second), None, Some(first)];
    let call = try_start_many(&db.pool, "orders", &inputs, Some(&ids));
    assert_eq!(
        raised(unchanged(&db.pool, call).await),
        format!("PF009: run {second} belongs to flow \"other\", not to flow \"orders\"")
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_bad_input_is_named_by_its_place_and_nothing_is_started() {
    let db = TestDb::new().await;
    define(&db.pool, "plain", &[step("a")]).await;
    define(&db.pool, "mapped", &[step("one"), step("each").map()]).await;
    let [good, list] = [Some(json!({})), Some(json!([]))];
    assert_eq!(
        refusal(&db.pool, "plain", &[good.clone(), None, good.clone()]).await,
        "PF005: flow \"plain\" was given no input (input 2 of 3)"
    );
    // The first of several.
    assert_eq!(
        refusal(
            &db.pool,
            "mapped",
            &[list.clone(), list.clone(), None, good]
        )
        .await,
        "PF005: flow \"mapped\" was given no input (input 3 of 4)"
    );
    for (input, kind) in [
        (json!(null), "null"),
        (json!("x"), "a string"),
        (json!(1), "a number"),
        (json!(true), "a boolean"),
        (json!({}), "an object"),
    ] {
        assert_eq!(
            refusal(&db.pool, "mapped", &[list.clone(), Some(input)]).await,
            format!(
                "PF005: flow \"mapped\" needs an array as its input, because step \"each\" maps over it; it was given {kind} (input 2 of 2)"
            )
        );
    }
    // Places are those of the call, and runs that exist have one too.
    let existing = start(&db.pool, "mapped", json!([])).await;
    let ids = [Some(existing), None];
    let call = try_start_many(&db.pool, "mapped", &[None, None], Some(&ids));
    assert_eq!(
        raised(unchanged(&db.pool, call).await),
        "PF005: flow \"mapped\" was given no input (input 2 of 2)"
    );
    assert_eq!(
        refusal(&db.pool, "mapped", &[None]).await,
        "PF005: flow \"mapped\" was given no input",
        "there is only one"
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn an_unknown_flow_and_ids_that_do_not_match_the_inputs_are_refused() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("a")]).await;
    let inputs = [Some(json!(1)), Some(json!(2))];
    for unknown in ["order", "Orders"] {
        assert_eq!(
            refusal(&db.pool, unknown, &inputs).await,
            format!("PF001: flow \"{unknown}\" is not defined in this database")
        );
    }
    for number in [0, 1, 3] {
        let ids = vec![None; number];
        let call = try_start_many(&db.pool, "orders", &inputs, Some(&ids));
        assert_eq!(
            raised(unchanged(&db.pool, call).await),
            format!("PF009: start_flows got 2 inputs and {number} run ids")
        );
    }
}

#[tokio::test]
async fn no_inputs_are_no_runs() {
    let db = TestDb::new().await;
    define(&db.pool, "orders", &[step("a")]).await;
    for ids in [None, Some([].as_slice())] {
        let call = try_start_many(&db.pool, "orders", &[], ids);
        let runs = unchanged(&db.pool, call).await.expect("accepted");
        assert!(runs.is_empty(), "{runs:?}");
    }
}
