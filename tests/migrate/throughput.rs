//! Migration 0005: the tasks that run while it is applied are found by recovery afterwards.

use std::time::Duration;

use pgflow_migrations::LATEST_VERSION;
use pgflow_runtime::migrate::{self, Migrator};

use super::{Blank, blank};
use crate::support::{eventually, sessions::holding};
use crate::upgrade::POPULATED_AT_LEVEL_3;

/// A database in use at level 4.
async fn populated() -> Blank {
    let database = blank().await;
    Migrator::new().up_to(3).run(&database.pool).await.unwrap();
    database.run(POPULATED_AT_LEVEL_3).await;
    Migrator::new().up_to(4).run(&database.pool).await.unwrap();
    database
}

/// A started task of each element of a new step, of a run that lasts.
const MANY_STARTED: &str = "
    insert into pgflow.step_states (flow_slug, run_id, step_slug, status, initial_tasks, remaining_tasks, started_at)
    select 'OrderTotals', run_id, 'double', 'started', 700, 700, now() from pgflow.runs where run_id::text like '%3'
    on conflict (run_id, step_slug) do update set status = 'started', initial_tasks = 700, remaining_tasks = 700, started_at = now();
    insert into pgflow.step_tasks (flow_slug, run_id, step_slug, task_index, message_id, queue_name, status, attempts_count, queued_at, started_at, last_worker_id)
    select 'OrderTotals', r.run_id, 'double', n, pgmq.send('ordertotals__double', '{}'), 'ordertotals__double', 'started', 1,
        now() - interval '1 hour', now() - interval '30 minutes' + make_interval(secs => n),
        case when n % 100 > 0 then '00000000-0000-0000-0000-0000000000dd'::uuid end
    from pgflow.runs r cross join generate_series(0, 699) n
    where r.run_id::text like '%3'";

const STARTED: &str = "select count(*) from pgflow.step_tasks where status = 'started'";

const LOST: &str = "select count(*) from pgflow.step_tasks t where t.status = 'started' and not exists (
    select from pgflow.claims c, unnest(c.run_ids, c.step_slugs, c.task_indexes) as i (run_id, step_slug, task_index)
    where i.run_id = t.run_id and i.step_slug = t.step_slug and i.task_index = t.task_index)";

#[tokio::test]
async fn what_is_running_is_recovered_after_the_upgrade() {
    let database = populated().await;
    database.run(MANY_STARTED).await;
    let before = "select string_agg(worker_id || ' ' || started_tasks, ', ' order by worker_id) from pgflow.worker_status";
    let busy = database.text(before).await;
    let started = database.count(STARTED).await;
    assert_eq!(started, 701);
    let report = migrate::migrate(&database.pool).await.unwrap();
    assert_eq!(
        (report.from_version, report.to_version),
        (4, LATEST_VERSION)
    );
    assert_eq!(database.count(LOST).await, 0);
    assert_eq!(
        database
            .count("select count(*) from pgflow.started_tasks")
            .await,
        started
    );
    assert_eq!(database.text(before).await, busy);
    assert_eq!(
        database.count("select count(*) from pgflow.claims").await,
        3,
        "two of the worker's, and one of nobody's"
    );
    // No worker is heard of, so that silent ones are not taken for dead yet: these are.
    database
        .run("update pgflow.workers set stopped_at = now() where stopped_at is null")
        .await;
    let recovered = "select pgflow.requeue_stalled_tasks()::bigint";
    assert_eq!(database.count(recovered).await, started);
    assert_eq!(database.count(STARTED).await, 0);
    database
        .run("update pgflow.claims set look_at = now()")
        .await;
    assert_eq!(database.count(recovered).await, 0);
    assert_eq!(
        database.count("select count(*) from pgflow.claims").await,
        0
    );
}

/// It has read its task, and is about to start it as the release before did: without a claim.
#[tokio::test]
async fn the_upgrade_waits_for_whoever_is_about_to_start_a_task() {
    let database = populated().await;
    let reading = "select from pgflow.step_tasks where status = 'queued'";
    let mut starting = holding(&database.pool, reading).await;
    let migrating = database.pool.clone();
    let upgrade = tokio::spawn(async move { migrate::migrate(&migrating).await });
    let waiting = "select count(*) from pg_locks l join pg_database d on d.oid = l.database
        where d.datname = current_database() and not l.granted and l.relation = 'pgflow.step_tasks'::regclass";
    eventually(
        Duration::from_secs(20),
        "the upgrade waits for the tasks",
        async || (database.count(waiting).await > 0).then_some(()),
    )
    .await;
    let start = "update pgflow.step_tasks set status = 'started', started_at = clock_timestamp(), attempts_count = attempts_count + 1
        where status = 'queued'";
    let started = sqlx::query(start).execute(&mut *starting).await.unwrap();
    assert!(started.rows_affected() > 0);
    starting.commit().await.unwrap();
    upgrade.await.unwrap().unwrap();
    assert!(database.count(STARTED).await > 0);
    assert_eq!(database.count(LOST).await, 0);
}

#[tokio::test]
async fn queues_of_flows_get_room_on_their_pages_and_others_are_left_alone() {
    let database = populated().await;
    database
        .run(
            "select pgmq.create('somebody_elses');
             select pgmq.drop_queue('ordertotals__total')",
        )
        .await;
    migrate::migrate(&database.pool).await.unwrap();
    let with_room = "select string_agg(c.relname, ' ' order by c.relname) from pg_class c
        where c.relnamespace = 'pgmq'::regnamespace and 'fillfactor=50' = any (c.reloptions)";
    assert_eq!(
        database.text(with_room).await,
        "q_ordertotals__double q_ordertotals__parse q_refunds"
    );
}
