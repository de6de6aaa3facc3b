-- A task that is claimed or ends changes no index. Functions whose results or parameters have changed.

-- A busy database must not queue up behind this: give up, change nothing, and let the operator choose a quieter moment.
set local lock_timeout = '10s';

drop function if exists pgflow._settle_steps(uuid[], text[], text);
drop function if exists pgflow._start_claimed(uuid, text, bigint[], boolean);
drop function if exists pgflow.release_tasks(uuid, uuid[], text[], int[], int[]);

-- One row per call that claimed tasks, with all that it started: what recovery looks through, instead of an index of started tasks. Every started
-- task is in at least one; a claim goes when recovery finds that none of its tasks is started any more. No foreign keys: runs may be gone by then.
create table pgflow.claims (
    claim_id bigint generated always as identity primary key,
    worker_id uuid not null,
    claimed_at timestamptz not null,
    -- When recovery is to look at it next.
    look_at timestamptz not null,
    run_ids uuid[] not null,
    step_slugs text[] not null,
    task_indexes int[] not null,
    constraint claim_names_tasks check (
        cardinality(run_ids) > 0 and cardinality(step_slugs) = cardinality(run_ids) and cardinality(task_indexes) = cardinality(run_ids)
    )
)
-- It comes and goes with the tasks that run, however many have ended.
with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 1000);
create index idx_claims_look_at on pgflow.claims (look_at);

-- Each task that is started now, once, however many claims it has been in.
create view pgflow.started_tasks as
select distinct on (t.run_id, t.step_slug, t.task_index)
    t.flow_slug, t.run_id, t.step_slug, t.task_index, t.queue_name, t.message_id, t.attempts_count, t.started_at, t.last_worker_id
from pgflow.claims c
cross join lateral unnest(c.run_ids, c.step_slugs, c.task_indexes) as i (run_id, step_slug, task_index)
-- The limit keeps this a look-up for each, however many tasks have ended.
cross join lateral (
    select k.*
    from pgflow.step_tasks k
    where k.run_id = i.run_id and k.step_slug = i.step_slug and k.task_index = i.task_index and k.status = 'started'
    limit 1
) t
order by t.run_id, t.step_slug, t.task_index;

-- Before the tasks are locked: whoever reads the view locks it first, then the tasks.
create or replace view pgflow.worker_status as
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
    from pgflow.started_tasks k
    group by k.last_worker_id
) t on t.last_worker_id = w.worker_id;

-- Room for each version of a row on its page: an update that finds none changes all indexes, and logs more.
alter table pgflow.runs set (fillfactor = 50);
alter table pgflow.step_states set (fillfactor = 50);
do $$
declare
    v_queue oid;
begin
    for v_queue in
        select c.oid
        from pgflow.wakeups k
        join pg_catalog.pg_class c on c.relnamespace = 'pgmq'::regnamespace and c.relname = 'q_' || k.queue_name
        -- A queue that somebody else made keeps what it has: that stops no upgrade.
        where pg_has_role(c.relowner, 'usage')
        order by c.relname
    loop
        execute format('alter table %s set (fillfactor = 50)', v_queue::regclass);
    end loop;
end
$$;

-- From here on nobody claims, and whoever has begun to is waited for: after the fill no task is started that is in no claim. A weaker lock would let
-- a claim pass that has read tasks, but has not started them yet: it would go on with the function of before, which writes no claim.
lock table pgflow.step_tasks in access exclusive mode;
insert into pgflow.claims (worker_id, claimed_at, look_at, run_ids, step_slugs, task_indexes)
select
    -- Every claim sets it; a row that was changed by hand may have none.
    coalesce(t.last_worker_id, '00000000-0000-0000-0000-000000000000'), min(t.started_at), min(t.started_at) + interval '30 seconds',
    array_agg(t.run_id order by t.run_id, t.step_slug, t.task_index),
    array_agg(t.step_slug order by t.run_id, t.step_slug, t.task_index),
    array_agg(t.task_index order by t.run_id, t.step_slug, t.task_index)
from (
    -- Some hundreds in each, as a worker would have claimed them.
    select k.*, row_number() over (partition by k.last_worker_id order by k.started_at, k.run_id, k.step_slug, k.task_index) / 500 as part
    from pgflow.step_tasks k
    where k.status = 'started'
) t
group by t.last_worker_id, t.part;
drop index pgflow.idx_step_tasks_started;
