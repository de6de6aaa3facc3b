//! The database of a search: one flow, whose definition each case replaces, and all the queues that
//! any case needs.

use sqlx::postgres::{PgConnection, PgPool};
use sqlx::{AssertSqlSafe, Executor};
use uuid::Uuid;

use super::flow::{Flow, Step};
use super::generator::MAX_STEPS;
use crate::support::events::set_event_level;
use crate::support::flows::{FUNCTION, step};

pub(crate) const FLOW: &str = "f";

/// Suffixes of views of the messages: of the flow's queue only, which is cheaper, and of all.
pub(crate) const ONE_QUEUE: &str = "one";
pub(crate) const ALL_QUEUES: &str = "all";

/// The remains of each case, in an order that foreign keys allow.
const REMOVED: [&str; 9] = [
    "pgflow.claims",
    "pgflow.step_tasks",
    "pgflow.step_states",
    "pgflow.runs",
    "pgflow.deps",
    "pgflow.steps",
    "pgflow.workers",
    "test_log.transitions",
    "realtime.messages",
];

/// The name of a queue; see [`Flow::queue`].
pub(crate) fn queue_name(queue: usize) -> String {
    match queue.checked_sub(1) {
        None => FLOW.to_owned(),
        Some(step) => format!("{FLOW}__own{step}"),
    }
}

/// A worker's id.
pub(crate) fn worker_id(worker: usize) -> Uuid {
    Uuid::from_u64_pair(7, worker as u64)
}

/// Makes the flow, the queues, a sink for events, and the functions that only these tests call.
pub(crate) async fn prepare(pool: &PgPool) -> sqlx::Result<()> {
    let queues: Vec<String> = (0..=MAX_STEPS).map(queue_name).collect();
    let mut statements = vec![
        format!("select pgflow.create_flow('{FLOW}')"),
        include_str!("setup.sql").to_owned(),
    ];
    for queue in &queues[1..] {
        statements.push(format!("select pgmq.create('{queue}')"));
    }
    for (view, queues) in [(ONE_QUEUE, &queues[..1]), (ALL_QUEUES, &queues[..])] {
        let live = union(queues, "msg_id, read_ct, vt", "q");
        let archived = union(queues, "msg_id, xmin", "a");
        statements.push(format!("create view model.live_{view} as {live}"));
        statements.push(format!("create view model.archived_{view} as {archived}"));
    }
    let mut emptying: Vec<String> = REMOVED.iter().map(|table| (*table).to_owned()).collect();
    for queue in &queues {
        emptying.push(format!("pgmq.q_{queue}"));
        emptying.push(format!("pgmq.a_{queue}"));
    }
    statements.push(format!(
        "create function model.reset() returns void language plpgsql as $$ begin
            delete from {};
            update pgflow.flows set queue_mode = 'flow';
        end $$",
        emptying.join("; delete from ")
    ));
    pool.execute(AssertSqlSafe(statements.join(";\n"))).await?;
    set_event_level(pool, "all").await;
    sqlx::query("select pgflow.track_worker_function($1)")
        .bind(FUNCTION)
        .execute(pool)
        .await?;
    Ok(())
}

/// The rows of a kind of table of these queues, each with the queue's number.
fn union(queues: &[String], columns: &str, table: &str) -> String {
    let selects = queues.iter().enumerate().map(|(number, queue)| {
        format!("select {number} as queue, {columns} from pgmq.{table}_{queue}")
    });
    selects.collect::<Vec<_>>().join(" union all ")
}

/// Removes what the case before has left, and defines the flow of the next one.
pub(crate) async fn define(connection: &mut PgConnection, flow: &Flow) -> sqlx::Result<()> {
    connection.execute("select model.reset()").await?;
    // What was removed would be read over and over: autovacuum does not come in time.
    let queue = queue_name(0);
    let vacuum = format!(
        "vacuum {}, pgmq.q_{queue}, pgmq.a_{queue}",
        REMOVED.join(", ")
    );
    connection.execute(AssertSqlSafe(vacuum)).await?;
    sqlx::query(
        "update pgflow.flows set opt_max_attempts = $1, opt_base_delay = $2, opt_timeout = $3",
    )
    .bind(flow.max_attempts)
    .bind(flow.base_delay)
    .bind(flow.timeout)
    .execute(&mut *connection)
    .await?;
    for step in &flow.steps {
        builder(flow, step).add(&mut *connection, FLOW).await?;
    }
    if flow.own_queues {
        route_steps_to_their_own_queues(connection).await?;
    }
    register_workers(connection, flow).await
}

fn builder(flow: &Flow, definition: &Step) -> crate::support::flows::Step {
    let deps: Vec<&str> = definition
        .deps
        .iter()
        .map(|&dep| flow.steps[dep].slug.as_str())
        .collect();
    let mut new = step(&definition.slug)
        .deps(&deps)
        .when_unmet(definition.when_unmet.name())
        .when_exhausted(definition.when_exhausted.name());
    if definition.is_map {
        new = new.map();
    }
    if definition.is_tolerant {
        new = new.tolerant();
    }
    if let Some(pattern) = &definition.required {
        new = new.required(pattern.clone());
    }
    if let Some(pattern) = &definition.forbidden {
        new = new.forbidden(pattern.clone());
    }
    if let Some(attempts) = definition.max_attempts {
        new = new.max_attempts(attempts);
    }
    if let Some(seconds) = definition.base_delay {
        new = new.base_delay(seconds);
    }
    if let Some(seconds) = definition.timeout {
        new = new.timeout(seconds);
    }
    if let Some(seconds) = definition.start_delay {
        new = new.start_delay(seconds);
    }
    new
}

/// The routes are written manually: making and dropping a dozen queues for each case, as startup
/// does, takes longer than driving it.
async fn route_steps_to_their_own_queues(connection: &mut PgConnection) -> sqlx::Result<()> {
    let names: Vec<String> = (1..=MAX_STEPS).map(queue_name).collect();
    sqlx::query("update pgflow.steps set queue_name = ($1::text[])[step_index + 1]")
        .bind(names)
        .execute(&mut *connection)
        .await?;
    connection
        .execute("update pgflow.flows set queue_mode = 'step'")
        .await?;
    Ok(())
}

/// Two for each queue; the handlers of the second also take the flow's input.
async fn register_workers(connection: &mut PgConnection, flow: &Flow) -> sqlx::Result<()> {
    let all: Vec<&str> = flow.steps.iter().map(|step| step.slug.as_str()).collect();
    for queue in flow.queues() {
        for worker in [2 * queue, 2 * queue + 1] {
            let step = queue.checked_sub(1).map(|step| all[step]);
            let taking = if worker % 2 == 1 { &all[..] } else { &[] };
            sqlx::query("select pgflow.register_worker($1, $2, $3, $4, $5, $6)")
                .bind(worker_id(worker))
                .bind(FUNCTION)
                .bind(FLOW)
                .bind(step)
                .bind(queue_name(queue))
                .bind(taking)
                .execute(&mut *connection)
                .await?;
        }
    }
    Ok(())
}
