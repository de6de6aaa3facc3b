-- Workers say which build of the application they run.

-- A busy database must not queue up behind this: give up, change nothing, and let the operator choose
-- a quieter moment.
set local lock_timeout = '10s';

-- NULL: not known, as of a worker of an older release.
alter table pgflow.workers add column build text;

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
    w.started_at, w.last_heartbeat_at, w.deprecated_at, w.deprecated_reason, w.stopped_at, w.build
from pgflow.workers w
left join pgflow.live_workers l on l.worker_id = w.worker_id
left join (
    select k.last_worker_id, count(*) as started_tasks
    from pgflow.started_tasks k
    group by k.last_worker_id
) t on t.last_worker_id = w.worker_id;

-- Renamed and not dropped: calls that have been planned go on by the old function. The next numbered
-- file may drop those of `_at_level_9`.
do $$
declare
    v_old regprocedure := to_regprocedure('pgflow.register_worker(uuid, text, text, text, text, text[])');
begin
    if v_old is not null then
        execute format('alter function %s rename to _register_worker_at_level_9', v_old);
        -- Its body qualifies its parameters with its name.
        execute regexp_replace(
            pg_get_functiondef(v_old), '\mregister_worker\.', '_register_worker_at_level_9.', 'g'
        );
    end if;
end
$$;
