-- The worker functions that go with a flow when it is deleted, by name: those whose newest worker
-- served it, and those without a worker that are named like one of its queues. Not one with a
-- worker that lives: it may serve another flow, and its row shows that it still has to stop.
-- Locks: none. Callers: _forget_worker_functions; operators' tools, before a deletion.
create or replace function pgflow._worker_functions_of(flow_slug text, queue_names text[]) returns setof text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    return query
    select f.function_name
    from pgflow.worker_functions f
    left join lateral (
        select w.flow_slug from pgflow.workers w where w.function_name = f.function_name order by w.started_at desc, w.worker_id desc limit 1
    ) newest on true
    where case
            when newest.flow_slug is null then f.function_name = any (_worker_functions_of.queue_names)
            else newest.flow_slug = _worker_functions_of.flow_slug
        end
        -- That of tests, which serves any flow.
        and f.function_name <> 'pgflow_testing'
        and not exists (select from pgflow.live_workers l where l.function_name = f.function_name)
    order by f.function_name;
end
$$;
