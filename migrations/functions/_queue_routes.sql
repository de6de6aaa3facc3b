-- Returns the queue of each step of a shape, as [{step, queue}, ..] in the order of its steps: the
-- one of the flow, or in mode `step` one of its own. Raises PF004 (a flow with step queues and no
-- step), PF010 (a name that is too long).
-- Locks: none. Callers: create_flow, ensure_flow_compiled.
create or replace function pgflow._queue_routes(flow_slug text, shape jsonb, queue_mode text) returns jsonb
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
    v_flow text := _queue_routes.flow_slug;
    v_slugs text[] := array(select e ->> 'slug' from jsonb_array_elements(shape -> 'steps') with ordinality as x (e, n) order by n);
    v_queues text[];
begin
    if queue_mode = 'flow' then
        if length(v_flow) > 47 then
            raise exception 'flow "%": queue name "%" has % characters; the limit is 47', v_flow, lower(v_flow collate "C"), length(v_flow) using
                errcode = 'PF010',
                hint = 'Use a shorter slug.';
        end if;
        v_queues := array_fill(lower(v_flow collate "C"), array[cardinality(v_slugs)]);
    elsif v_slugs = '{}' then
        raise exception 'flow "%" has a queue for each step, but no step', v_flow using
            errcode = 'PF004',
            hint = 'Add a step, or use one queue for the whole flow.';
    else
        v_queues := pgflow._step_queue_names(v_flow, v_slugs);
    end if;
    return (
        select coalesce(jsonb_agg(jsonb_build_object('step', r.step, 'queue', r.queue) order by r.n), '[]')
        from unnest(v_slugs, v_queues) with ordinality as r (step, queue, n)
    );
end
$$;
