//! Events as a listener gets them.

use serde_json::Value;
use sqlx::postgres::{PgListener, PgPool};

/// A session that listens on channel `pgflow`.
#[derive(Debug)]
pub(crate) struct Events(PgListener);

impl Events {
    /// Sets the event level, and listens.
    pub(crate) async fn at_level(pool: &PgPool, level: &str) -> Self {
        set_event_level(pool, level).await;
        let mut listener = PgListener::connect_with(pool)
            .await
            .expect("a listening session");
        listener.listen("pgflow").await.expect("LISTEN is allowed");
        Self(listener)
    }

    /// The payloads of all events since the last call.
    pub(crate) async fn payloads(&mut self, pool: &PgPool) -> Vec<Value> {
        // Notifications arrive in the order of their commits: what comes before this one is all
        // there is.
        sqlx::query("select pg_notify('pgflow', '\"the end\"')")
            .execute(pool)
            .await
            .expect("NOTIFY is allowed");
        let mut payloads = Vec::new();
        loop {
            let notification = self.0.recv().await.expect("the session lives");
            let payload: Value =
                serde_json::from_str(notification.payload()).expect("a payload is JSON");
            if payload == "the end" {
                return payloads;
            }
            payloads.push(payload);
        }
    }

    /// The types of all events since the last call, each with the step that it is about:
    /// `step:started a, run:completed`.
    pub(crate) async fn types(&mut self, pool: &PgPool) -> String {
        let payloads = self.payloads(pool).await;
        let types: Vec<String> = payloads.iter().map(describe).collect();
        types.join(", ")
    }
}

/// Sets which events are emitted.
pub(crate) async fn set_event_level(pool: &PgPool, level: &str) {
    sqlx::query("update pgflow.installation set event_level = $1")
        .bind(level)
        .execute(pool)
        .await
        .expect("the level can be set");
}

/// The type of an event, and the step that it is about.
pub(crate) fn describe(payload: &Value) -> String {
    let event_type = payload["event_type"].as_str().expect("an event has a type");
    match payload["step_slug"].as_str() {
        Some(step) => format!("{event_type} {step}"),
        None => event_type.to_owned(),
    }
}
