//! Functions and workers: tracked, registered, alive, stopped, disabled.

use serde_json::{Value, json};
use sqlx::postgres::{PgPool, PgQueryResult};
use uuid::Uuid;

use crate::support::TestDb;
use crate::support::flows::{FUNCTION, define, raw_claim, step, worker};
use crate::support::invariants::assert_invariants;
use crate::support::rows::{count, raised};

async fn track(pool: &PgPool, mode: Option<&str>) -> sqlx::Result<PgQueryResult> {
    sqlx::query("select pgflow.track_worker_function(function_name => 'f', start_mode => $1)")
        .bind(mode)
        .execute(pool)
        .await
}

async fn function(pool: &PgPool) -> (String, bool) {
    sqlx::query_as(
        "select start_mode, enabled from pgflow.worker_functions where function_name = 'f'",
    )
    .fetch_one(pool)
    .await
    .expect("the function is tracked")
}

/// Registers a worker; the arguments that a test is not about are right.
struct Registration {
    id: Uuid,
    function: &'static str,
    flow: &'static str,
    step: Option<&'static str>,
    queue: &'static str,
}

impl Registration {
    fn new() -> Self {
        Self {
            id: Uuid::now_v7(),
            function: "f",
            flow: "Orders",
            step: None,
            queue: "orders",
        }
    }

    async fn register(&self, pool: &PgPool) -> sqlx::Result<PgQueryResult> {
        sqlx::query(
            "select pgflow.register_worker(worker_id => $1, function_name => $2, flow_slug => $3, step_slug => $4,
                queue_name => $5, flow_input_steps => null)",
        )
        .bind(self.id)
        .bind(self.function)
        .bind(self.flow)
        .bind(self.step)
        .bind(self.queue)
        .execute(pool)
        .await
    }
}

async fn heartbeat(pool: &PgPool, worker: Uuid) -> sqlx::Result<bool> {
    sqlx::query_scalar("select pgflow.worker_heartbeat($1)")
        .bind(worker)
        .fetch_one(pool)
        .await
}

async fn stop(pool: &PgPool, worker: Uuid) {
    sqlx::query("select pgflow.mark_worker_stopped($1)")
        .bind(worker)
        .execute(pool)
        .await
        .expect("a worker can always stop");
}

#[tokio::test]
async fn a_function_is_tracked_once_and_its_start_mode_is_the_latest() {
    let db = TestDb::new().await;
    sqlx::query("select pgflow.track_worker_function('f')")
        .execute(&db.pool)
        .await
        .expect("tracked");
    assert_eq!(function(&db.pool).await, ("process".to_owned(), true));
    track(&db.pool, Some("http")).await.expect("tracked");
    assert_eq!(function(&db.pool).await, ("http".to_owned(), true));
    assert_eq!(count(&db.pool, "pgflow.worker_functions").await, 1);
}

#[tokio::test]
async fn a_disabled_function_stays_disabled_when_it_is_tracked_again() {
    let db = TestDb::new().await;
    track(&db.pool, Some("process")).await.expect("tracked");
    sqlx::query("update pgflow.worker_functions set enabled = false, disabled_at = now(), disabled_reason = 'fenced'")
        .execute(&db.pool)
        .await
        .expect("disabled");
    track(&db.pool, Some("process")).await.expect("tracked");
    assert_eq!(function(&db.pool).await, ("process".to_owned(), false));
}

#[tokio::test]
async fn a_disabled_function_is_enabled_by_name() {
    let db = TestDb::new().await;
    track(&db.pool, Some("process")).await.expect("tracked");
    sqlx::query("update pgflow.worker_functions set enabled = false, disabled_at = now(), disabled_reason = 'fenced'")
        .execute(&db.pool)
        .await
        .expect("disabled");
    for _ in 0..2 {
        sqlx::query("select pgflow.enable_worker_function('f')")
            .execute(&db.pool)
            .await
            .expect("enabled, or enabled already");
        assert_eq!(function(&db.pool).await, ("process".to_owned(), true));
    }
    let unknown = sqlx::query("select pgflow.enable_worker_function('g')")
        .execute(&db.pool)
        .await;
    assert_eq!(raised(unknown), "PF001: worker function \"g\" is not known");
}

#[tokio::test]
async fn a_start_mode_is_process_or_http() {
    let db = TestDb::new().await;
    assert_eq!(
        raised(track(&db.pool, Some("cron")).await),
        "PF009: start mode \"cron\" of function \"f\" is unknown; it is \"process\" or \"http\""
    );
    assert_eq!(
        raised(track(&db.pool, None).await),
        "PF009: start mode \"<NULL>\" of function \"f\" is unknown; it is \"process\" or \"http\""
    );
    assert_eq!(count(&db.pool, "pgflow.worker_functions").await, 0);
}

#[tokio::test]
async fn a_registered_worker_has_a_row_that_says_what_it_serves() {
    let db = TestDb::new().await;
    define(&db.pool, "Orders", &[step("a")]).await;
    track(&db.pool, Some("process")).await.expect("tracked");
    let registration = Registration::new();
    registration.register(&db.pool).await.expect("registered");
    let row: Value = sqlx::query_scalar(
        "select to_jsonb(w) - 'started_at' - 'last_heartbeat_at' from pgflow.workers w",
    )
    .fetch_one(&db.pool)
    .await
    .expect("one worker");
    assert_eq!(
        row,
        json!({
            "worker_id": registration.id, "function_name": "f", "queue_name": "orders", "flow_slug": "Orders", "step_slug": null,
            "flow_input_steps": [], "deprecated_at": null, "stopped_at": null,
        })
    );
    assert_eq!(
        raised(registration.register(&db.pool).await),
        format!("PF007: worker id {} is taken", registration.id)
    );
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

#[tokio::test]
async fn a_heartbeat_is_stored_and_answers_whether_the_worker_is_deprecated() {
    let db = TestDb::new().await;
    define(&db.pool, "Orders", &[]).await;
    let (beating, silent) = (
        worker(&db.pool, "Orders").await,
        worker(&db.pool, "Orders").await,
    );
    sqlx::query("update pgflow.workers set last_heartbeat_at = '2000-01-01'")
        .execute(&db.pool)
        .await
        .expect("time can be set back");
    assert!(!heartbeat(&db.pool, beating).await.expect("alive"));
    let recent: Vec<Uuid> = sqlx::query_scalar(
        "select worker_id from pgflow.workers where last_heartbeat_at > started_at",
    )
    .fetch_all(&db.pool)
    .await
    .expect("workers can be read");
    assert_eq!(recent, [beating]);
    sqlx::query("update pgflow.workers set deprecated_at = now() where worker_id = $1")
        .bind(silent)
        .execute(&db.pool)
        .await
        .expect("deprecated");
    assert!(heartbeat(&db.pool, silent).await.expect("alive"));
}

#[tokio::test]
async fn a_stopped_worker_is_stamped_once_and_has_no_heartbeat() {
    let db = TestDb::new().await;
    define(&db.pool, "Orders", &[]).await;
    let (stopping, running) = (
        worker(&db.pool, "Orders").await,
        worker(&db.pool, "Orders").await,
    );
    let stopped = "select array_agg(worker_id), min(stopped_at::text) from pgflow.workers where stopped_at is not null";
    stop(&db.pool, stopping).await;
    let first: (Vec<Uuid>, String) = sqlx::query_as(stopped)
        .fetch_one(&db.pool)
        .await
        .expect("one");
    assert_eq!(first.0, [stopping]);
    stop(&db.pool, stopping).await;
    stop(&db.pool, Uuid::now_v7()).await;
    let second: (Vec<Uuid>, String) = sqlx::query_as(stopped)
        .fetch_one(&db.pool)
        .await
        .expect("one");
    assert_eq!(second, first);

    for gone in [stopping, Uuid::now_v7()] {
        assert_eq!(
            raised(heartbeat(&db.pool, gone).await),
            format!("PF007: worker {gone} is not registered, or has stopped")
        );
    }
    assert!(!heartbeat(&db.pool, running).await.expect("alive"));
}
