//! Events where a function `realtime.send` exists: it gets the payloads, and nobody is notified.
//! `payloads` has what they say.

mod payloads;

use std::collections::BTreeMap;

use serde_json::{Value, json};
use sqlx::postgres::PgPool;
use uuid::Uuid;

use crate::support::events::{Events, describe, set_event_level};
use crate::support::flows::{claim_one, complete, drain, start, step};
use crate::support::invariants::assert_invariants;
use crate::support::runs::{claim_all, database_with, fail_for_good, of_step};

/// The arguments that the function received: payload, event name, topic, privacy.
type Sent = (Value, String, String, bool);

async fn install_realtime(pool: &PgPool) {
    for statement in [
        "create schema realtime",
        "create table realtime.messages (n bigint generated always as identity, payload jsonb, event text, topic text, private boolean)",
        "create function realtime.send(payload jsonb, event text, topic text, private boolean default true) returns void language sql
         as $$ insert into realtime.messages (payload, event, topic, private) values (payload, event, topic, private) $$",
    ] {
        sqlx::query(statement)
            .execute(pool)
            .await
            .expect("the sink can be made");
    }
}

async fn sent(pool: &PgPool) -> Vec<Sent> {
    sqlx::query_as("select payload, event, topic, private from realtime.messages order by n")
        .fetch_all(pool)
        .await
        .expect("what was sent can be read")
}

#[tokio::test]
async fn payload_event_and_topic_are_sent_and_nobody_is_notified() {
    let (db, worker) = database_with(&[step("a"), step("m").map().deps(&["a"])]).await;
    install_realtime(&db.pool).await;
    let mut events = Events::at_level(&db.pool, "all").await;
    let run_id = start(&db.pool, "f", json!({"q": 1})).await;
    complete(&db.pool, &claim_one(&db.pool, worker).await, json!(["x"])).await;
    drain(&db.pool, worker, |task| json!([task.input])).await;
    assert_eq!(events.types(&db.pool).await, "");

    let sent = sent(&db.pool).await;
    let names: Vec<&str> = sent.iter().map(|(_, event, ..)| event.as_str()).collect();
    assert_eq!(
        names,
        [
            "run:started",
            "step:a:started",
            "step:a:completed",
            "step:m:started",
            "step:m:completed",
            "run:completed"
        ]
    );
    for (payload, _, topic, private) in &sent {
        assert_eq!(payload["run_id"], json!(run_id));
        assert_eq!(payload["flow_slug"], json!("f"));
        assert_eq!(topic, &format!("pgflow:run:{run_id}"));
        assert!(!private);
    }
    assert_eq!(sent[0].0["input"], json!({"q": 1}));
    assert_eq!(sent[0].0["status"], json!("started"));
    assert_eq!(sent[2].0["output"], json!(["x"]));
    assert_eq!(sent[3].0["remaining_tasks"], json!(1));
    assert_eq!(sent[4].0["output"], json!([["x"]]), "the whole map's");
    assert_eq!(sent[5].0["output"], json!({"m": [["x"]]}));
    assert_eq!(sent[5].0["status"], json!("completed"));
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn the_level_holds_for_it_too() {
    let (db, worker) = database_with(&[step("a")]).await;
    install_realtime(&db.pool).await;
    for (level, expected) in [("off", 0), ("runs", 1), ("all", 5)] {
        set_event_level(&db.pool, level).await;
        start(&db.pool, "f", json!({})).await;
        drain(&db.pool, worker, |_| json!(1)).await;
        assert_eq!(sent(&db.pool).await.len(), expected, "after level {level}");
    }
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_type_has_one_layout_whoever_emits_it() {
    let (db, worker) = database_with(&[
        step("a").when_exhausted("skip-cascade"),
        step("cascaded").deps(&["a"]),
        step("unmet").required(json!({"never": 1})),
        step("empty").map().deps(&["unmet"]),
        step("list"),
        step("each").map().deps(&["list"]),
        step("strict")
            .deps(&["each"])
            .required(json!({"each": 1}))
            .when_unmet("fail"),
    ])
    .await;
    install_realtime(&db.pool).await;
    set_event_level(&db.pool, "all").await;
    // Once through each emitter: skips of all kinds, empty and real maps, and the three ways to
    // fail.
    for ending in ["condition", "violation", "handler"] {
        start(&db.pool, "f", json!({})).await;
        let claimed = claim_all(&db.pool, worker).await;
        fail_for_good(&db.pool, of_step(&claimed, "a"), "skips").await;
        let list = of_step(&claimed, "list");
        match ending {
            "condition" => complete(&db.pool, list, json!([])).await,
            "violation" => complete(&db.pool, list, json!({})).await,
            _ => fail_for_good(&db.pool, list, "no").await,
        };
    }

    let sent = sent(&db.pool).await;
    let mut layouts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (payload, ..) in &sent {
        let keys: Vec<String> = payload
            .as_object()
            .expect("an object")
            .keys()
            .cloned()
            .collect();
        let event_type = payload["event_type"].as_str().expect("a type").to_owned();
        assert_eq!(
            layouts.entry(event_type).or_insert_with(|| keys.clone()),
            &keys,
            "{payload}"
        );
    }
    let types: Vec<&str> = layouts.keys().map(String::as_str).collect();
    assert_eq!(
        types,
        [
            "run:failed",
            "run:started",
            "step:completed",
            "step:failed",
            "step:skipped",
            "step:started"
        ]
    );

    let errors: Vec<&Value> = sent
        .iter()
        .filter(|(payload, ..)| payload["event_type"] == "run:failed")
        .map(|(payload, ..)| &payload["error_message"])
        .collect();
    assert_eq!(errors.len(), 3);
    assert_eq!(errors[0], "Condition not met");
    assert!(
        errors[1]
            .as_str()
            .expect("an error")
            .contains("[TYPE_VIOLATION]")
    );
    assert_eq!(errors[2], "no");

    let skips: Vec<String> = sent
        .iter()
        .filter(|(payload, ..)| payload["event_type"] == "step:skipped")
        .take(3)
        .map(|(payload, ..)| format!("{}: {}", describe(payload), payload["skip_reason"]))
        .collect();
    assert_eq!(
        skips,
        [
            "step:skipped unmet: \"condition_unmet\"",
            "step:skipped a: \"handler_failed\"",
            "step:skipped cascaded: \"dependency_skipped\""
        ]
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_function_of_another_shape_is_not_the_sink() {
    let (db, worker) = database_with(&[step("a")]).await;
    for statement in [
        "create schema realtime",
        "create function realtime.send(payload jsonb) returns void language sql as $$ $$",
    ] {
        let made = sqlx::query(statement).execute(&db.pool).await;
        made.expect("the function can be made");
    }
    let mut events = Events::at_level(&db.pool, "runs").await;
    let run_id: Uuid = start(&db.pool, "f", json!({})).await;
    drain(&db.pool, worker, |_| json!(1)).await;
    assert_eq!(
        events.payloads(&db.pool).await,
        [json!({"event_type": "run:completed", "run_id": run_id})]
    );
    assert_invariants(&db.pool).await;
}
