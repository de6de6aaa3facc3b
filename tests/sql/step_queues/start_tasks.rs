//! `start_tasks` for flows with step queues: the step must be said, and must be the worker's own.

use serde_json::json;
use sqlx::postgres::PgPool;
use uuid::Uuid;

use crate::sql::stored::unchanged;
use crate::support::TestDb;
use crate::support::flows::{define, define_with_step_queues, start, step, step_worker, worker};
use crate::support::invariants::assert_invariants;
use crate::support::rows::raised;

/// A call of `start_tasks`; what a test is not about is right for the worker of step `a`.
#[derive(Debug, Clone, Copy)]
struct Call {
    flow: Option<&'static str>,
    queue: Option<&'static str>,
    step: Option<&'static str>,
}

const RIGHT: Call = Call {
    flow: Some("orders"),
    queue: Some("orders__a"),
    step: Some("a"),
};

impl Call {
    /// Steps and messages of the tasks that it started.
    async fn start(self, pool: &PgPool, worker: Uuid) -> sqlx::Result<Vec<(String, i64)>> {
        sqlx::query_as(
            "select step_slug, msg_id from pgflow.start_tasks(flow_slug => $1, msg_ids => array[1, 2, 3], worker_id => $2,
                queue_name => $3, step_slug => $4)",
        )
        .bind(self.flow)
        .bind(worker)
        .bind(self.queue)
        .bind(self.step)
        .fetch_all(pool)
        .await
    }
}

async fn database() -> TestDb {
    let db = TestDb::new().await;
    define_with_step_queues(&db.pool, "orders", &[step("a"), step("b")]).await;
    define(&db.pool, "plain", &[step("a")]).await;
    for flow in ["orders", "orders", "plain"] {
        start(&db.pool, flow, json!({})).await;
    }
    db
}

#[tokio::test]
async fn the_step_s_own_tasks_are_started_and_no_other_ones_of_the_same_number() {
    let db = database().await;
    let [a, b] = [
        step_worker(&db.pool, "orders", "a").await,
        step_worker(&db.pool, "orders", "b").await,
    ];
    let started = |step: &str| [1, 2].map(|id| (step.to_owned(), id));
    assert_eq!(
        RIGHT.start(&db.pool, a).await.expect("started"),
        started("a")
    );
    let of_b = Call {
        queue: Some("orders__b"),
        step: Some("b"),
        ..RIGHT
    };
    assert_eq!(
        of_b.start(&db.pool, b).await.expect("started"),
        started("b")
    );
    assert!(
        RIGHT
            .start(&db.pool, a)
            .await
            .expect("nothing is left")
            .is_empty()
    );
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn what_does_not_fit_the_flow_is_refused_and_nothing_is_started() {
    let db = database().await;
    let worker = step_worker(&db.pool, "orders", "a").await;
    for (call, message) in [
        (
            Call {
                step: None,
                ..RIGHT
            },
            "PF009: flow \"orders\" has a queue per step; start_tasks needs the step_slug",
        ),
        (
            Call {
                step: None,
                queue: Some("orders"),
                ..RIGHT
            },
            "PF009: flow \"orders\" has a queue per step; start_tasks needs the step_slug",
        ),
        (
            Call {
                step: Some("c"),
                ..RIGHT
            },
            "PF003: flow \"orders\" has no step \"c\"",
        ),
        (
            Call {
                step: Some("A"),
                ..RIGHT
            },
            "PF003: flow \"orders\" has no step \"A\"",
        ),
        (
            Call {
                step: Some(""),
                ..RIGHT
            },
            "PF003: flow \"orders\" has no step \"\"",
        ),
        (
            Call {
                queue: Some("orders__b"),
                ..RIGHT
            },
            "PF009: flow \"orders\" uses queue \"orders__a\" for step \"a\", not \"orders__b\"",
        ),
        (
            Call {
                queue: Some("orders"),
                ..RIGHT
            },
            "PF009: flow \"orders\" uses queue \"orders__a\" for step \"a\", not \"orders\"",
        ),
        (
            Call {
                queue: Some("ORDERS__A"),
                ..RIGHT
            },
            "PF009: flow \"orders\" uses queue \"orders__a\" for step \"a\", not \"ORDERS__A\"",
        ),
        (
            Call {
                queue: None,
                ..RIGHT
            },
            "PF009: flow \"orders\" uses queue \"orders__a\" for step \"a\", not \"<NULL>\"",
        ),
        (
            Call {
                flow: Some("Orders"),
                ..RIGHT
            },
            "PF001: flow \"Orders\" is not defined in this database",
        ),
        (
            Call {
                flow: None,
                ..RIGHT
            },
            "PF001: flow \"<NULL>\" is not defined in this database",
        ),
        (
            Call {
                flow: Some("plain"),
                queue: Some("plain"),
                step: Some("a"),
            },
            "PF009: flow \"plain\" has one queue for all its steps; start_tasks takes no step_slug for it",
        ),
    ] {
        let refusal = unchanged(&db.pool, call.start(&db.pool, worker)).await;
        assert_eq!(raised(refusal), message, "{call:?}");
    }
    assert_invariants(&db.pool).await;
}

#[tokio::test]
async fn a_worker_of_another_queue_is_refused() {
    let db = database().await;
    let b = step_worker(&db.pool, "orders", "b").await;
    let plain = worker(&db.pool, "plain").await;
    let of_plain = Call {
        flow: Some("plain"),
        queue: Some("plain"),
        step: None,
    };
    for (call, worker, serves, asked) in [
        (RIGHT, b, "orders__b", "orders__a"),
        (RIGHT, plain, "plain", "orders__a"),
        (of_plain, b, "orders__b", "plain"),
    ] {
        assert_eq!(
            raised(unchanged(&db.pool, call.start(&db.pool, worker)).await),
            format!("PF009: worker {worker} serves queue \"{serves}\", not \"{asked}\"")
        );
    }
    assert_eq!(
        of_plain
            .start(&db.pool, plain)
            .await
            .expect("started")
            .len(),
        1
    );
    assert_invariants(&db.pool).await;
}
