//! The complete state of the database: read in one query, which returns the rows that changed since
//! the last one and counts all.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::de::DeserializeOwned;
use sqlx::postgres::{PgConnection, PgRow};
use sqlx::types::Json;
use sqlx::{AssertSqlSafe, Row};
use uuid::Uuid;

use super::call::TaskKey;
use super::flow::Flow;
use super::rows::{EventRow, MessageRow, RunRow, StepRow, TaskRow};
use super::setup::{ALL_QUEUES, ONE_QUEUE};

/// `VIEW`: of one queue or all. Rows whose last writer is as young as this snapshot's `next_writer`
/// may be new to it. What was removed shows in the counts.
const QUERY: &str = "
select
    pg_snapshot_xmax(pg_current_snapshot())::text::bigint,
    model.us(clock_timestamp()),
    (select count(*) from pgflow.runs),
    (select count(*) from pgflow.step_states),
    (select count(*) from pgflow.step_tasks),
    (select count(*) from model.archived_VIEW),
    (
        select coalesce(json_agg(json_build_array(
            run_id, status, remaining_steps, json_build_array(input), case when output is not null then json_build_array(output) end,
            error_message, model.us(started_at), model.us(completed_at), model.us(failed_at)
        )), '[]')
        from pgflow.runs where xmin::text::bigint >= $1
    ),
    (
        select coalesce(json_agg(json_build_array(
            run_id, step_slug, status, initial_tasks, remaining_tasks, failed_tasks, remaining_deps,
            case when output is not null then json_build_array(output) end, error_message, skip_reason,
            model.us(created_at), model.us(started_at), model.us(completed_at), model.us(failed_at), model.us(skipped_at)
        )), '[]')
        from pgflow.step_states where xmin::text::bigint >= $1
    ),
    (
        select coalesce(json_agg(json_build_array(
            run_id, step_slug, task_index, status, attempts_count, uncounted_attempts, postponed_count, runs_alone, requeued_count, permanently_stalled_at is not null,
            queue_name, message_id, case when input is not null then json_build_array(input) end,
            case when output is not null then json_build_array(output) end, error_message, last_worker_id,
            model.us(queued_at), model.us(started_at), model.us(completed_at), model.us(failed_at)
        )), '[]')
        from pgflow.step_tasks where xmin::text::bigint >= $1
    ),
    (select coalesce(json_agg(json_build_array(queue, msg_id, read_ct, model.us(vt))), '[]') from model.live_VIEW),
    (select coalesce(json_agg(json_build_array(queue, msg_id)), '[]') from model.archived_VIEW where xmin::text::bigint >= $1),
    (
        select coalesce(json_agg(json_build_array(n, event, topic, private, payload) order by n), '[]')
        from realtime.messages where n > $2
    )";

/// The contents of the database, and the events since the snapshot before.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Snapshot {
    /// The server's clock, in microseconds.
    pub(crate) time: i64,
    /// Whoever writes from here on has this id or a higher one.
    next_writer: i64,
    last_event: i64,
    pub(crate) runs: BTreeMap<usize, Arc<RunRow>>,
    pub(crate) steps: BTreeMap<(usize, usize), Arc<StepRow>>,
    pub(crate) tasks: BTreeMap<TaskKey, Arc<TaskRow>>,
    /// By queue and id.
    pub(crate) live: BTreeMap<(usize, i64), MessageRow>,
    pub(crate) archived: BTreeSet<(usize, i64)>,
    pub(crate) events: Vec<EventRow>,
}

/// A run's id tells its number.
pub(crate) fn run_number(id: Uuid) -> usize {
    let (_, number) = id.as_u64_pair();
    usize::try_from(number).unwrap_or(usize::MAX)
}

pub(crate) fn step_place(flow: &Flow, slug: &str) -> Option<usize> {
    flow.steps.iter().position(|step| step.slug == slug)
}

fn column<T: DeserializeOwned + 'static>(row: &PgRow, place: usize) -> sqlx::Result<Vec<T>> {
    let Json(rows) = row.try_get(place)?;
    Ok(rows)
}

impl Snapshot {
    /// Reads the state once more; `self` is the state before.
    pub(crate) async fn next(
        &self,
        connection: &mut PgConnection,
        flow: &Flow,
    ) -> Result<Self, String> {
        let view = if flow.own_queues {
            ALL_QUEUES
        } else {
            ONE_QUEUE
        };
        let row = sqlx::query(AssertSqlSafe(QUERY.replace("VIEW", view)))
            .bind(self.next_writer)
            .bind(self.last_event)
            .fetch_one(connection)
            .await
            .map_err(|error| format!("the state can not be read: {error}"))?;
        let next = self.with(&row, flow);
        let next = next.map_err(|error| format!("the state can not be decoded: {error}"))?;
        next.assert_complete(&row)?;
        Ok(next)
    }

    fn with(&self, row: &PgRow, flow: &Flow) -> sqlx::Result<Self> {
        let mut next = Self {
            next_writer: row.try_get(0)?,
            time: row.try_get(1)?,
            ..self.clone()
        };
        let place = |slug: &str| step_place(flow, slug).unwrap_or(usize::MAX);
        for run in column::<RunRow>(row, 6)? {
            next.runs.insert(run_number(run.run_id), Arc::new(run));
        }
        for step in column::<StepRow>(row, 7)? {
            let key = (run_number(step.run_id), place(&step.slug));
            next.steps.insert(key, Arc::new(step));
        }
        for task in column::<TaskRow>(row, 8)? {
            let key = TaskKey {
                run: run_number(task.run_id),
                step: place(&task.slug),
                index: task.index,
            };
            next.tasks.insert(key, Arc::new(task));
        }
        let live = column::<MessageRow>(row, 9)?;
        next.live = live.into_iter().map(|m| ((m.queue, m.id), m)).collect();
        next.archived.extend(column::<(usize, i64)>(row, 10)?);
        next.events = column(row, 11)?;
        next.last_event = next.events.last().map_or(self.last_event, |event| event.n);
        Ok(next)
    }

    /// Checks whether this is all there is: no row has gone.
    fn assert_complete(&self, row: &PgRow) -> Result<(), String> {
        let count = |place| row.try_get(place).unwrap_or(-1);
        let counts: [i64; 4] = [count(2), count(3), count(4), count(5)];
        let known = [
            self.runs.len(),
            self.steps.len(),
            self.tasks.len(),
            self.archived.len(),
        ];
        if counts.map(|n| usize::try_from(n).unwrap_or(usize::MAX)) == known {
            return Ok(());
        }
        Err(format!(
            "runs, steps, tasks and archived messages: {counts:?} are there, {known:?} were seen"
        ))
    }

    /// The same, whatever was read when.
    pub(crate) fn is_same_as(&self, other: &Self) -> bool {
        self.runs == other.runs
            && self.steps == other.steps
            && self.tasks == other.tasks
            && self.live == other.live
            && self.archived == other.archived
    }
}
