//! `register_worker`: a worker says what it serves, and is refused what is not there or not
//! allowed.

use serde_json::{Value, json};
use sqlx::postgres::{PgPool, PgQueryResult};
use uuid::Uuid;

use super::track_worker_function::track;
use crate::support::TestDb;
use crate::support::flows::{FUNCTION, define, raw_claim, step, worker};
use crate::support::invariants::assert_invariants;
use crate::support::rows::{count, raised};

/// Registers a worker; the arguments that a test is not about are right.
struct Registration {
    id: Uuid,
    build: Option<String>,
    function: &'static str,
    flow: &'static str,
    step: Option<&'static str>,
    queue: &'static str,
}

impl Registration {
    fn new() -> Self {
        Self {
            id: Uuid::now_v7(),
            build: None,
            function: "f",
            flow: "Orders",
            step: None,
            queue: "orders",
        }
    }

    async fn register(&self, pool: &PgPool) -> sqlx::Result<PgQueryResult> {
        sqlx::query(
            "select pgflow.register_worker(worker_id => $1, function_name => $2, flow_slug => $3, step_slug => $4,
                queue_name => $5, flow_input_steps => null, build => $6)",
        )
        .bind(self.id)
        .bind(self.function)
        .bind(self.flow)
        .bind(self.step)
        .bind(self.queue)
        .bind(self.build.as_deref())
        .execute(pool)
        .await
    }
}

#[tokio::test]
async fn a_registered_worker_has_a_row_that_says_what_it_serves() {
    let db = TestDb::new().await;
    define(&db.pool, "Orders", &[step("a")]).await;
    track(&db.pool, Some("process")).await.expect("tracked");
    let registration = Registration::new();
    registration.register(&db.pool).await.expect("registered");
    let row: Value = sqlx::query_scalar(
        "select to_jsonb(w) - array['started_at', 'last_heartbeat_at', 'heard_since', 'lost_at', 'flow_input_once'] from pgflow.workers w",
    )
    .fetch_one(&db.pool)
    .await
    .expect("one worker");
    assert_eq!(
        row,
        json!({
            "worker_id": registration.id, "function_name": "f", "queue_name": "orders", "flow_slug": "Orders", "step_slug": null,
            "flow_input_steps": [], "deprecated_at": null, "deprecated_reason": null, "stopped_at": null,
            "host": null, "pid": null, "build": null,
            "alone_queue": null, "alone_message": null, "alone_attempt": null, "alone_since": null,
        })
    );
    assert_eq!(
        raised(registration.register(&db.pool).await),
        format!("PF007: worker id {} is taken", registration.id)
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_worker_says_which_build_it_runs_in_few_characters_that_can_be_printed() {
    let db = TestDb::new().await;
    define(&db.pool, "Orders", &[step("a")]).await;
    track(&db.pool, Some("process")).await.expect("tracked");
    let with = |build: &str| Registration {
        build: Some(build.to_owned()),
        ..Registration::new()
    };
    let longest = "é".repeat(128);
    for build in ["1.0.0-rc.1+7", "release 42", &longest] {
        let registration = with(build);
        registration.register(&db.pool).await.expect("registered");
        let stored: String =
            sqlx::query_scalar("select build from pgflow.worker_status where worker_id = $1")
                .bind(registration.id)
                .fetch_one(&db.pool)
                .await
                .expect("one worker");
        assert_eq!(stored, build);
    }
    for (build, characters) in [("", 0), ("1\n", 2), ("\u{7f}", 1), (&"b".repeat(129), 129)] {
        assert_eq!(
            raised(with(build).register(&db.pool).await),
            format!(
                "PF009: the build of a worker has {characters} characters, or a control character among them"
            )
        );
    }
    assert_eq!(count(&db.pool, "pgflow.workers").await, 3);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_worker_of_what_is_not_there_is_refused() {
    let db = TestDb::new().await;
    define(&db.pool, "Orders", &[step("a")]).await;
    track(&db.pool, Some("process")).await.expect("tracked");
    for (registration, message) in [
        (
            Registration {
                function: "g",
                ..Registration::new()
            },
            "PF001: worker function \"g\" is not tracked",
        ),
        (
            Registration {
                flow: "orders",
                ..Registration::new()
            },
            "PF001: flow \"orders\" is not defined in this database",
        ),
        (
            Registration {
                queue: "Orders",
                ..Registration::new()
            },
            "PF009: queue \"Orders\" is no route of flow \"Orders\"",
        ),
        (
            Registration {
                step: Some("a"),
                ..Registration::new()
            },
            "PF009: queue \"orders\" is no route of flow \"Orders\", step \"a\"",
        ),
        (
            Registration {
                step: Some("b"),
                queue: "orders__b",
                ..Registration::new()
            },
            "PF009: queue \"orders__b\" is no route of flow \"Orders\", step \"b\"",
        ),
    ] {
        assert_eq!(raised(registration.register(&db.pool).await), message);
    }
    assert_eq!(count(&db.pool, "pgflow.workers").await, 0);
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_disabled_function_gets_no_worker_until_it_is_enabled_again() {
    let db = TestDb::new().await;
    define(&db.pool, "Orders", &[step("a")]).await;
    let first = worker(&db.pool, "Orders").await;
    sqlx::query("select pgmq.send('orders', '{}')")
        .execute(&db.pool)
        .await
        .expect("sent");
    assert_eq!(
        raw_claim(&db.pool, first, 1).await.len(),
        1,
        "a fatal answer"
    );
    let second = Registration {
        function: FUNCTION,
        ..Registration::new()
    };
    let refusal = raised(second.register(&db.pool).await);
    assert!(
        refusal.starts_with("PF007: worker function \"test-worker\" is disabled since "),
        "{refusal}"
    );
    assert!(
        refusal.ends_with(
            ": unsupported work in queue \"orders\": message 1: no task has this message"
        ),
        "{refusal}"
    );
    sqlx::query("update pgflow.worker_functions set enabled = true")
        .execute(&db.pool)
        .await
        .expect("enabled");
    second.register(&db.pool).await.expect("registered");
    assert_eq!(count(&db.pool, "pgflow.workers").await, 2);
    assert_invariants(&db.pool).await;
}
