-- Workers that operators can fence, and that are woken when there is work.

-- A busy database must not queue up behind this: give up, change nothing, and let the operator choose a quieter moment.
set local lock_timeout = '10s';

alter table pgflow.installation
    -- Whether workers are notified of new tasks. Without that they find them at their next poll.
    add column wakeups boolean not null default true;

-- The functions before the workers, as a worker that registers takes them: the other way round the two could wait for each other.
alter table pgflow.worker_functions
    -- Out of service for a deployment. What the function was before is recorded, and restored by the end of the fence.
    add column fenced_at timestamptz,
    add column recorded_enabled boolean,
    add column recorded_disabled_at timestamptz,
    add column recorded_disabled_reason text,
    -- Where a function of start mode `http` is invoked.
    add column http_url text,
    add constraint fence_records_what_was check ((fenced_at is null) = (recorded_enabled is null)),
    add constraint fenced_is_disabled check (fenced_at is null or not enabled),
    add constraint recorded_disabled_has_a_time check (recorded_enabled is not false or recorded_disabled_at is not null);

alter table pgflow.workers
    add column deprecated_reason text;
-- Whoever may live, of however many there were. A heartbeat changes no index: none has its column.
create index idx_workers_not_stopped on pgflow.workers (function_name) where stopped_at is null;

-- When a queue's workers were notified last: at most once in 50 ms. The row of a queue comes and goes with its flow.
create table pgflow.wakeups (
    queue_name text primary key,
    notified_at timestamptz not null default '-infinity'
)
-- Updated all the time, and never grows: each change stays on its page.
with (fillfactor = 20, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

insert into pgflow.wakeups (queue_name)
select s.queue_name from pgflow.steps s
union
select lower(f.flow_slug collate "C") from pgflow.flows f where f.queue_mode = 'flow';

-- Workers that have not stopped, and were heard of within 6 seconds. A deprecated one still lives while it finishes what it runs, but takes no
-- new work. Every other place that asks who lives reads this view.
create view pgflow.live_workers as
select
    w.worker_id, w.function_name, w.flow_slug, w.step_slug, w.queue_name,
    w.started_at, w.last_heartbeat_at, w.deprecated_at, w.deprecated_reason
from pgflow.workers w
where w.stopped_at is null and w.last_heartbeat_at > now() - interval '6 seconds';

-- Each worker and what it does: running, draining (deprecated, and still alive), lost (silent without having stopped), or stopped.
create view pgflow.worker_status as
select
    w.worker_id, w.function_name, w.flow_slug, w.step_slug, w.queue_name,
    case
        when w.stopped_at is not null then 'stopped'
        when l.worker_id is null then 'lost'
        when w.deprecated_at is not null then 'draining'
        else 'running'
    end as state,
    coalesce(t.started_tasks, 0) as started_tasks,
    w.started_at, w.last_heartbeat_at, w.deprecated_at, w.deprecated_reason, w.stopped_at
from pgflow.workers w
left join pgflow.live_workers l on l.worker_id = w.worker_id
left join (
    select k.last_worker_id, count(*) as started_tasks
    from pgflow.step_tasks k
    where k.status = 'started'
    group by k.last_worker_id
) t on t.last_worker_id = w.worker_id;

-- One row per queue of a flow: who serves it, and what waits in it. A step-queued flow has a row for each step, a plain one a single row.
-- A deprecated worker takes no new work, so it does not count.
create or replace view pgflow.coverage as
select
    r.flow_slug, r.queue_mode, r.step_slug, r.queue_name,
    w.live_workers > 0 as is_covered,
    w.live_workers,
    (select max(x.last_heartbeat_at) from pgflow.workers x where x.flow_slug = r.flow_slug and x.queue_name = r.queue_name) as last_heartbeat_at,
    m.messages as waiting_messages,
    m.oldest_at as oldest_waiting_at
from (
    select f.flow_slug, f.queue_mode, null::text as step_slug, lower(f.flow_slug collate "C") as queue_name, -1 as step_index
    from pgflow.flows f
    where f.queue_mode = 'flow'
    union all
    select s.flow_slug, f.queue_mode, s.step_slug, s.queue_name, s.step_index
    from pgflow.flows f
    join pgflow.steps s on s.flow_slug = f.flow_slug
    where f.queue_mode = 'step'
) r
cross join lateral (
    select count(*) as live_workers
    from pgflow.live_workers x
    where x.flow_slug = r.flow_slug and x.queue_name = r.queue_name and x.deprecated_at is null
) w
cross join lateral pgflow._waiting_messages(r.queue_name) m
order by r.flow_slug, r.step_index;

-- It returns the function now; its text of today stands in functions/.
drop function if exists pgflow.enable_worker_function(text);
