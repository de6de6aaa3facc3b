-- Tells a flow's workers to stop, and returns those that still live with the number of tasks that
-- each has started: `[]` once nobody is left. Tasks of dead workers don't count.
-- Locks: needs the definition lock; takes the flow, so that no worker registers meanwhile, and the
-- workers' rows.
-- Callers: ensure_flow_compiled.
create or replace function pgflow._drain_flow(flow_slug text) returns jsonb
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
#variable_conflict use_column
begin
    perform pgflow._lock_flow(_drain_flow.flow_slug, alone => true);
    perform pgflow._deprecate_workers(null, _drain_flow.flow_slug, 'the flow is being replaced by another definition');
    return (
        select coalesce(jsonb_agg(
            jsonb_build_object(
                'worker_id', w.worker_id, 'function_name', w.function_name, 'step_slug', w.step_slug, 'last_heartbeat_at', w.last_heartbeat_at,
                'started_tasks', coalesce(t.started_tasks, 0)
            )
            order by w.started_at, w.worker_id
        ), '[]')
        from pgflow.live_workers w
        left join (
            select k.last_worker_id, count(*) as started_tasks
            from pgflow.started_tasks k
            where k.flow_slug = _drain_flow.flow_slug
            group by k.last_worker_id
        ) t on t.last_worker_id = w.worker_id
        where w.flow_slug = _drain_flow.flow_slug
    );
end
$$;
