-- One line per difference between the queues that a worker's code expects and the stored ones; the
-- shapes are equal.
-- Locks: none. Callers: ensure_flow_compiled.
create or replace function pgflow._route_differences(flow_slug text, queue_mode text, routes jsonb) returns text[]
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    return array(
        select x.line
        from (
            select -1 as position, format(
                'with_step_queues: %s in the code, %s in the database',
                case _route_differences.queue_mode when 'step' then 'yes' else 'no' end, case f.queue_mode when 'step' then 'yes' else 'no' end
            ) as line
            from pgflow.flows f
            where f.flow_slug = _route_differences.flow_slug and f.queue_mode <> _route_differences.queue_mode
            union all
            select s.step_index, format('step "%s": queue %s in the code, %s in the database', s.step_slug, r.route ->> 'queue', s.queue_name)
            from jsonb_array_elements(_route_differences.routes) r (route)
            join pgflow.steps s on s.flow_slug = _route_differences.flow_slug and s.step_slug = r.route ->> 'step'
            where s.queue_name <> r.route ->> 'queue'
        ) x
        order by x.position
    );
end
$$;
