//! `ctx.cancelled()` tells a handler that nothing waits for its attempt any more.

use pgflow::client::Client;
use pgflow::prelude::*;
use pgflow::worker::WorkerHandle;
use uuid::Uuid;

use super::{DEADLINE, probe::Probe, run_sql, start, task, until_task_is};
use crate::support::{TestDb, invariants::assert_invariants};

/// Until the probe lets it go or it is asked to stop; notes which it was.
async fn patiently(state: &Probe, ctx: &StepContext, what: &str) {
    tokio::select! {
        () = state.pass(format!("{what} waits")) => {}
        () = ctx.cancelled() => state.note(format!("{what} told to stop")),
    }
}

mod pair {
    use super::*;

    /// Two steps that wait.
    pub(super) struct Pair;

    #[flow(input = (), state = Probe)]
    impl Pair {
        #[step]
        async fn wait(state: &Probe, ctx: &StepContext) -> StepResult<()> {
            patiently(state, ctx, &format!("attempt {}", ctx.attempt())).await;
            Ok(())
        }

        #[step]
        async fn other(state: &Probe, ctx: &StepContext) -> StepResult<()> {
            patiently(state, ctx, "the other step").await;
            Ok(())
        }
    }
}

mod items {
    use super::*;

    /// A step with several tasks, which is skipped when one of them fails, and one beside it.
    pub(super) struct Items;

    #[flow(input = Vec<u32>, state = Probe)]
    impl Items {
        #[step(map = input, when_exhausted = "skip")]
        async fn each(item: u32, state: &Probe, ctx: &StepContext) -> StepResult<u32> {
            patiently(state, ctx, &format!("item {item}")).await;
            Ok(item)
        }

        #[step]
        async fn other(state: &Probe, ctx: &StepContext) -> StepResult<()> {
            patiently(state, ctx, "the other step").await;
            Ok(())
        }
    }
}

use items::Items;
use pair::{Pair, Step};

struct Case {
    database: TestDb,
    probe: Probe,
    worker: WorkerHandle,
    run_id: Uuid,
}

impl Case {
    /// A worker whose handlers wait.
    async fn new() -> Self {
        let database = TestDb::new().await;
        let probe = Probe::closed();
        let worker = start::<Pair>(&database.pool, probe.clone()).await;
        let client = Client::new(database.pool.clone());
        let run_id = client.start::<Pair>(&()).await.unwrap().run_id();
        probe.until_count(2).await;
        Self {
            database,
            probe,
            worker,
            run_id,
        }
    }

    async fn sql(&self, sql: &str) {
        let sql = sql.replace("$run", &format!("'{}'", self.run_id));
        run_sql(&self.database.pool, &sql).await;
    }
}

/// The first task of a step fails, and no other attempt follows.
async fn fail_for_good(database: &TestDb, step: &str) {
    let failed = sqlx::query(
        "select pgflow.fail_task(run_id => t.run_id, step_slug => t.step_slug, task_index => t.task_index, \
             attempt => t.attempts_count, error_message => 'as the test asks', retryable => false) \
         from pgflow.step_tasks t where t.step_slug = $1 and t.task_index = 0",
    )
    .bind(step)
    .fetch_all(&database.pool)
    .await
    .unwrap();
    assert_eq!(failed.len(), 1);
}

#[tokio::test]
async fn a_handler_whose_run_has_failed_is_told_to_stop() {
    let case = Case::new().await;
    fail_for_good(&case.database, "other").await;
    case.probe.until_seen("attempt 1 told to stop").await;
    case.worker.stop().await.unwrap();
    let task = task(&case.database.pool, case.run_id, Step::Wait).await;
    assert_ne!(task.status, "completed");
    assert_invariants(&case.database.pool).await;
}

#[tokio::test]
async fn a_handler_whose_run_was_deleted_is_told_to_stop() {
    let case = Case::new().await;
    case.sql(
        "begin; delete from pgflow.step_tasks where run_id = $run; delete from pgflow.step_states where run_id = $run; \
         delete from pgflow.runs where run_id = $run; delete from pgmq.q_pair; commit",
    )
    .await;
    case.probe.until_seen("attempt 1 told to stop").await;
    case.worker.stop().await.unwrap();
}

#[tokio::test]
async fn a_handler_whose_task_was_given_to_another_attempt_is_told_to_stop_and_that_one_is_not() {
    let case = Case::new().await;
    // As if it had started long ago.
    case.sql(
        "update pgflow.step_tasks set queued_at = queued_at - interval '1 h', started_at = started_at - interval '1 h' where run_id = $run and status = 'started'; \
         update pgflow.claims set look_at = look_at - interval '1 h'; \
         select pgflow.requeue_stalled_tasks()",
    )
    .await;
    case.probe.until_seen("attempt 2 waits").await;
    case.probe.until_seen("attempt 1 told to stop").await;
    case.probe.let_all_go();
    until_task_is(&case.database.pool, case.run_id, Step::Wait, "completed").await;
    case.worker.stop().await.unwrap();
    let seen = case.probe.seen();
    assert!(
        !seen.contains(&"attempt 2 told to stop".to_owned()),
        "{seen:?}"
    );
    assert_invariants(&case.database.pool).await;
}

#[tokio::test]
async fn handlers_of_a_skipped_step_are_told_to_stop_and_those_of_other_steps_are_not() {
    let database = TestDb::new().await;
    let probe = Probe::closed();
    let worker = start::<Items>(&database.pool, probe.clone()).await;
    let client = Client::new(database.pool.clone());
    let run = client.start::<Items>(&vec![0, 1]).await.unwrap();
    probe.until_count(3).await;
    fail_for_good(&database, "each").await;
    probe.until_seen("item 1 told to stop").await;
    probe.let_all_go();
    run.wait().timeout(DEADLINE).await.unwrap();
    worker.stop().await.unwrap();
    let seen = probe.seen();
    assert!(
        !seen.contains(&"the other step told to stop".to_owned()),
        "{seen:?}"
    );
    assert_invariants(&database.pool).await;
}
