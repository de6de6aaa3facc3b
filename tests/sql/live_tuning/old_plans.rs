//! Sessions that prepared their statements, and planned them permanently, before the options
//! changed.

use serde_json::{Value, json};
use sqlx::Connection;
use sqlx::postgres::PgConnection;
use uuid::Uuid;

use super::{hidden_by_claim, tune, tune_flow};
use crate::support::TestDb;
use crate::support::events::Events;
use crate::support::flows::{
    Claimed, Step, claim_one, complete, define, drain, fail, start, step, worker,
};
use crate::support::invariants::assert_invariants;
use crate::support::rows::{messages, show_all};
use crate::support::runs::{age, hidden_by, is_backoff, outline, requeue, until_recovery_looks};

/// A session that has started, claimed, failed and completed often enough for its plans to be
/// generic ones.
struct Veteran {
    db: TestDb,
    worker: Uuid,
    session: PgConnection,
}

impl Veteran {
    async fn new(steps: &[Step]) -> Self {
        let db = TestDb::new().await;
        define(&db.pool, "f", steps).await;
        let worker = worker(&db.pool, "f").await;
        let session = PgConnection::connect(&db.url).await.expect("a session");
        let mut veteran = Self {
            db,
            worker,
            session,
        };
        for _ in 0..12 {
            veteran.start().await;
            let task = veteran.claim().await;
            fail(&mut veteran.session, &task, "again").await;
            let task = veteran.claim().await;
            complete(&mut veteran.session, &task, json!(1)).await;
            assert_eq!(requeue(&mut veteran.session).await, 0);
            drain(&veteran.db.pool, worker, |_| Value::Null).await;
        }
        let generic: i64 = sqlx::query_scalar(
            "select count(*) from pg_prepared_statements where generic_plans > 0 and statement like '%pgflow.claim_tasks%'",
        )
        .fetch_one(&mut veteran.session)
        .await
        .expect("prepared statements can be listed");
        assert_ne!(generic, 0, "the session plans no more");
        veteran
    }

    async fn start(&mut self) -> Uuid {
        start(&mut self.session, "f", json!({})).await
    }

    async fn claim(&mut self) -> Claimed {
        claim_one(&mut self.session, self.worker).await
    }
}

#[tokio::test]
async fn a_session_with_old_plans_sees_each_change() {
    let mut v = Veteran::new(&[
        step("a"),
        step("b").deps(&["a"]).required(json!({"a": 1})),
        step("c").deps(&["b"]).start_delay(0),
    ])
    .await;
    let pool = v.db.pool.clone();

    tune_flow(&pool, "opt_timeout = 300, opt_base_delay = 1000").await;
    tune(&pool, "a", "opt_max_attempts = 3").await;
    let run_id = v.start().await;
    let task = v.claim().await;
    assert_eq!((task.max_attempts, task.timeout), (3, 300));
    assert_eq!(hidden_by_claim(&pool, &task).await, 302);
    let failing = fail(&mut v.session, &task, "again");
    let hidden = hidden_by(&pool, "f", task.message_id, failing).await;
    assert!(is_backoff(&hidden, 2000), "{hidden:?}");

    show_all(&pool, "f").await;
    v.claim().await;
    age(&pool, run_id, "a", 100).await;
    assert_eq!(requeue(&mut v.session).await, 0);
    tune(&pool, "a", "opt_timeout = 10").await;
    until_recovery_looks(&pool).await;
    assert_eq!(requeue(&mut v.session).await, 1);

    let task = v.claim().await;
    tune(&pool, "b", "when_unmet = 'skip'").await;
    tune(&pool, "c", "opt_start_delay = 500").await;
    complete(&mut v.session, &task, json!(2)).await;
    assert_eq!(
        outline(&pool, run_id).await,
        "run started, a completed, b skipped: condition_unmet, c started"
    );
    let c = &messages(&pool, "f").await[0];
    assert_eq!(c.visible_after(c.enqueued_at), 500);

    show_all(&pool, "f").await;
    let task = v.claim().await;
    tune(&pool, "c", "when_exhausted = 'skip', opt_max_attempts = 1").await;
    let mut events = Events::at_level(&pool, "all").await;
    assert_eq!(fail(&mut v.session, &task, "no").await, "failed");
    assert_eq!(events.types(&pool).await, "step:skipped c, run:completed");
    assert_invariants(&pool).await;
}
