//! The conditions that must hold when everything has settled.

use std::{collections::HashMap, fmt};

use serde_json::Value;
use sqlx::{AssertSqlSafe, PgPool};
use uuid::Uuid;

use super::expected::{Outcome, complaints};
use super::producer::Orders;
use crate::support::invariants::assert_invariants;

/// The number of violations that a failure lists.
const SHOWN: usize = 20;

/// The figures of a run of chaos that the database knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, sqlx::FromRow)]
pub(crate) struct Figures {
    pub(crate) runs: i64,
    pub(crate) failed_runs: i64,
    pub(crate) tasks: i64,
    pub(crate) attempts: i64,
    /// Attempts that began and were never heard of again: with their worker, or with the answer to
    /// its claim.
    pub(crate) lost_attempts: i64,
    /// Tasks that were lost at their last attempt, of steps that have many.
    pub(crate) given_up: i64,
    pub(crate) effects: i64,
    /// Effects beyond the first of a task, of attempts that would have succeeded.
    pub(crate) duplicates: i64,
}

impl Figures {
    pub(crate) async fn of(pool: &PgPool) -> Self {
        sqlx::query_as(
            "select
                 (select count(*) from pgflow.runs) as runs,
                 (select count(*) from pgflow.runs where status = 'failed') as failed_runs,
                 count(*) as tasks,
                 coalesce(sum(t.attempts_count), 0) as attempts,
                 coalesce(sum(t.requeued_count), 0) + count(t.permanently_stalled_at) as lost_attempts,
                 count(t.permanently_stalled_at) filter (where d.when_exhausted = 'fail') as given_up,
                 (select count(*) from effects) as effects,
                 (select count(*) - count(distinct (run_id, step_slug, task_index)) from effects where is_good) as duplicates
             from pgflow.step_tasks t
             join pgflow.steps d using (flow_slug, step_slug)",
        )
        .fetch_one(pool)
        .await
        .expect("everything can be counted")
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} runs ({} failed), {} tasks, {} attempts, {} lost, {} tasks given up; {} effects, {} duplicates",
            self.runs,
            self.failed_runs,
            self.tasks,
            self.attempts,
            self.lost_attempts,
            self.given_up,
            self.effects,
            self.duplicates
        )
    }
}

/// Fails the test when anything is not as it must be.
pub(crate) async fn assert_all_is_well(pool: &PgPool, orders: &Orders) {
    let mut broken = Vec::new();
    let mut outcomes = outcomes(pool).await;
    for (run_id, order) in orders {
        match outcomes.remove(run_id) {
            Some(outcome) => {
                let complaints = complaints(order, &outcome).into_iter();
                broken.extend(complaints.map(|what| format!("run {run_id}: {what}")));
            }
            None => broken.push(format!("run {run_id} was started and is not there")),
        }
    }
    broken.extend(
        outcomes
            .into_keys()
            .map(|run_id| format!("nobody started run {run_id}")),
    );
    broken.extend(findings(pool).await);
    broken.extend(unarchived(pool).await);
    assert!(
        broken.is_empty(),
        "{} things are not as they must be:\n{}",
        broken.len(),
        broken[..broken.len().min(SHOWN)].join("\n")
    );
    assert_invariants(pool).await;
}

/// Returns the results of the queries that must find nothing.
async fn findings(pool: &PgPool) -> Vec<String> {
    let mut findings = Vec::new();
    for (what, query) in NOTHING {
        let rows: Vec<String> = sqlx::query_scalar(query)
            .fetch_all(pool)
            .await
            .unwrap_or_else(|error| panic!("{what}: {error}"));
        findings.extend(rows.into_iter().map(|row| format!("{what}: {row}")));
    }
    findings
}

/// Queries that must find nothing.
const NOTHING: [(&str, &str); 7] = [
    (
        "a task completed by an attempt that had no effect",
        "select format('run %s, %s[%s], attempt %s', t.run_id, t.step_slug, t.task_index, t.attempts_count)
         from pgflow.step_tasks t
         where t.status = 'completed' and not exists (
             select from effects e
             where e.run_id = t.run_id and e.step_slug = t.step_slug and e.task_index = t.task_index and e.attempt = t.attempts_count and e.is_good
         )",
    ),
    (
        "an attempt that ran twice",
        "select format('run %s, %s[%s], attempt %s: %s calls', run_id, step_slug, task_index, attempt, count(*))
         from effects group by run_id, step_slug, task_index, attempt having count(*) > 1",
    ),
    (
        "an attempt that ran and does not count",
        "select format('run %s, %s[%s], attempt %s', e.run_id, e.step_slug, e.task_index, e.attempt)
         from effects e
         left join pgflow.step_tasks t using (run_id, step_slug, task_index)
         where e.attempt > coalesce(t.attempts_count, 0)",
    ),
    (
        "a completed task that is not recorded as completed once",
        "select format('run %s, %s[%s]: %s times', t.run_id, t.step_slug, t.task_index, count(x.n))
         from pgflow.step_tasks t
         left join test_log.transitions x
             on x.kind = 'task' and x.new_status = 'completed' and x.run_id = t.run_id and x.step_slug = t.step_slug and x.task_index = t.task_index
         where t.status = 'completed'
         group by t.run_id, t.step_slug, t.task_index having count(x.n) <> 1",
    ),
    (
        "an attempt that failed though its handler did not",
        "select format('run %s, %s[%s]: %s', run_id, step_slug, task_index, error_message)
         from pgflow.step_tasks
         where error_message not in (
                 'this one fails', 'the handler panicked: this one panics', 'all of these fail', 'doomed from the start'
             )
             and error_message not like 'stalled: %'
             and error_message not like 'the attempt timed out after 3 s;%'",
    ),
    (
        "a message is left",
        "select format('message %s in queue %s', message_id, queue_name) from test_log.messages()",
    ),
    (
        "a function is out of service",
        "select format('%s: %s', function_name, disabled_reason) from pgflow.worker_functions where not enabled",
    ),
];

/// Messages of tasks that are not archived, and archived messages that no task had.
async fn unarchived(pool: &PgPool) -> Vec<String> {
    let queues: Vec<String> = sqlx::query_scalar("select queue_name::text from pgmq.meta")
        .fetch_all(pool)
        .await
        .expect("the queues can be listed");
    assert!(!queues.is_empty(), "the flow has queues");
    let mut found = Vec::new();
    for queue in queues {
        let query = format!(
            "select format('message %s of queue {queue}: %s', coalesce(t.message_id, a.msg_id), case when a.msg_id is null then 'not archived' else 'nobody''s' end)
             from (select message_id from pgflow.step_tasks where queue_name = '{queue}') t
             full join pgmq.\"a_{queue}\" a on a.msg_id = t.message_id
             where a.msg_id is null or t.message_id is null"
        );
        let rows: Vec<String> = sqlx::query_scalar(AssertSqlSafe(query))
            .fetch_all(pool)
            .await
            .expect("archives can be read");
        found.extend(rows);
    }
    found
}

async fn outcomes(pool: &PgPool) -> HashMap<Uuid, Outcome> {
    type Run = (Uuid, String, Option<String>, Option<Value>, bool);
    type Step = (Uuid, String, String, Option<Value>);
    let runs: Vec<Run> = sqlx::query_as(
        "select r.run_id, r.status, r.error_message, r.output, exists (
             select from pgflow.step_tasks t
             join pgflow.steps d using (flow_slug, step_slug)
             where t.run_id = r.run_id and t.permanently_stalled_at is not null and d.when_exhausted = 'fail'
         )
         from pgflow.runs r",
    )
    .fetch_all(pool)
    .await
    .expect("runs can be read");
    let steps: Vec<Step> =
        sqlx::query_as("select run_id, step_slug, status, output from pgflow.step_states")
            .fetch_all(pool)
            .await
            .expect("steps can be read");
    // A task that failed because it was given up, or because its last attempt ran out of time while
    // the database was away, may never have got as far as its effect.
    let effects: Vec<(Uuid, String, i32)> = sqlx::query_as(
        "select run_id, step_slug, task_index from effects
         union
         select run_id, step_slug, task_index from pgflow.step_tasks
         where status = 'failed' and (permanently_stalled_at is not null or error_message like 'the attempt timed out%')",
    )
    .fetch_all(pool)
    .await
    .expect("effects can be read");

    let mut outcomes = HashMap::new();
    for (run_id, status, error_message, output, is_given_up) in runs {
        let outcome = Outcome {
            status,
            error_message,
            output,
            is_given_up,
            ..Outcome::default()
        };
        outcomes.insert(run_id, outcome);
    }
    for (run_id, step, status, output) in steps {
        let outcome = outcomes.get_mut(&run_id).expect("a step belongs to a run");
        outcome.steps.insert(step, (status, output));
    }
    for (run_id, step, index) in effects {
        let outcome = outcomes
            .get_mut(&run_id)
            .expect("handlers run for runs only");
        outcome.effects.insert((step, index));
    }
    outcomes
}

mod tests {
    use serde_json::json;
    use sqlx::PgPool;

    use super::{NOTHING, findings, unarchived};
    use crate::chaos::effects;
    use crate::support::TestDb;
    use crate::support::flows::{claim_one, complete, define, start, step, worker};

    /// A run of one step, completed, with the effect of its attempt.
    async fn completed() -> TestDb {
        let db = TestDb::new().await;
        effects::create_table(&db.pool).await;
        define(&db.pool, "f", &[step("a")]).await;
        start(&db.pool, "f", json!({})).await;
        let worker = worker(&db.pool, "f").await;
        let task = claim_one(&db.pool, worker).await;
        assert_eq!(complete(&db.pool, &task, json!(1)).await, "completed");
        run(&db.pool, EFFECT).await;
        db
    }

    const EFFECT: &str = "insert into effects (call_id, run_id, step_slug, task_index, attempt, is_good, pid)
        select gen_random_uuid(), run_id, step_slug, task_index, attempts_count, true, 1 from pgflow.step_tasks";

    async fn run(pool: &PgPool, sql: &'static str) {
        sqlx::raw_sql(sql).execute(pool).await.unwrap();
    }

    #[tokio::test]
    async fn nothing_is_found_where_all_is_well() {
        let db = completed().await;
        assert_eq!(findings(&db.pool).await, [""; 0]);
        assert_eq!(unarchived(&db.pool).await, [""; 0]);
    }

    #[tokio::test]
    async fn each_query_finds_what_it_is_for() {
        let faults = [
            ("no effect", "update effects set is_good = false"),
            ("ran twice", EFFECT),
            (
                "does not count",
                "update effects set attempt = 2; insert into effects select gen_random_uuid(), run_id, step_slug, task_index, 1, true, 1 from effects",
            ),
            (
                "recorded as completed once",
                "insert into test_log.transitions (kind, run_id, step_slug, task_index, new_status) select 'task', run_id, step_slug, task_index, 'completed' from pgflow.step_tasks",
            ),
            (
                "its handler did not",
                "update pgflow.step_tasks set error_message = 'the worker lost its way'",
            ),
            ("a message is left", "select pgmq.send('f', '{}')"),
            (
                "out of service",
                "update pgflow.worker_functions set enabled = false, disabled_at = now(), disabled_reason = 'poison'",
            ),
        ];
        assert_eq!(faults.len(), NOTHING.len());
        for ((words, fault), (what, _)) in faults.into_iter().zip(NOTHING) {
            assert!(
                what.contains(words),
                "the faults are in the order of the queries: {what}"
            );
            let db = completed().await;
            run(&db.pool, fault).await;
            let found = findings(&db.pool).await;
            assert_eq!(found.len(), 1, "{what}: {found:?}");
            assert!(found[0].starts_with(what), "{found:?}");
        }
    }

    #[tokio::test]
    async fn messages_that_are_not_archived_and_those_of_nobody_are_found() {
        let db = completed().await;
        run(&db.pool, "update pgmq.a_f set msg_id = msg_id + 100").await;
        let mut found = unarchived(&db.pool).await;
        found.sort();
        assert_eq!(
            found,
            [
                "message 1 of queue f: not archived",
                "message 101 of queue f: nobody's"
            ]
        );
    }
}
