-- Compares the flow of a worker's code with the flow in this database, at the worker's startup:
--   compiled    it was missing, and is stored now
--   verified    it is stored, and equal
--   mismatch    it is stored, and different (`mismatch_kind` shape or routing, a line for each of
--               the `differences`); nothing changed
--   draining    the same in a local database: its workers were asked to stop, `workers` still live;
--               ask again
--   recompiled  the same once none lives: the old flow was deleted with its runs, and the new one
--               is stored
-- Whether a database is local is told by pgflow.installation alone. Options are no part of a shape.
-- A local database follows those of the code (`options_followed`). Elsewhere the stored ones apply:
-- `options_differ` has a line for each that the code would have otherwise, `option_updates` the
-- statements that change them, and `options_are_news` says whether that was reported before. Raises
-- PF001 (the flow is being deleted), PF004 (a wrong shape), PF006 (queue collision), PF009 (queue
-- mode; a route map that does not follow from the shape), PF010.
-- Locks: none while the flow is stored as it should be and nobody changes it; else definitions; to
-- recompile, as delete_flow_and_data. Callers: workers.
create or replace function pgflow.ensure_flow_compiled(
    flow_slug text,
    shape jsonb,
    queue_mode text default 'flow',
    route_map jsonb default null
) returns jsonb
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    v_flow text := ensure_flow_compiled.flow_slug;
    v_mode text := ensure_flow_compiled.queue_mode;
    v_routes jsonb;
    v_kind text := 'shape';
    v_differences text[];
    v_workers jsonb := '[]';
    v_status text;
    v_deletion timestamptz;
    v_is_local boolean;
    v_functions pgflow.worker_functions[];
    v_options text[] := '{}';
    v_updates text[] := '{}';
    v_is_news boolean := false;
    v_followed bigint := 0;
begin
    if v_mode is null or v_mode not in ('flow', 'step') then
        raise exception 'flow "%": queue mode "%" is unknown; it is "flow" or "step"', v_flow, v_mode using
            errcode = 'PF009',
            hint = 'Leave it out for "flow".';
    end if;
    perform pgflow._assert_slug('flow', v_flow);
    perform pgflow._assert_shape(v_flow, shape);
    perform pgflow._assert_step_slugs(v_flow, shape);
    v_routes := pgflow._queue_routes(v_flow, shape, v_mode);
    if route_map is not null and route_map <> v_routes then
        raise exception 'flow "%": the worker routes its steps to other queues than the database', v_flow using
            errcode = 'PF009',
            detail = format('worker: %s; database: %s', route_map, v_routes),
            hint = 'The worker was built with another version of pgflow. Build it with the version that the database was migrated with.';
    end if;

    v_is_local := exists (select from pgflow.installation i where i.environment = 'local');
    -- So no worker waits for what happens to other flows.
    if pgflow._is_stored_as(v_flow, shape, v_mode, v_routes) and (not v_is_local or pgflow._option_differences(v_flow, shape) = '{}') then
        v_status := 'verified';
    else
        perform pgflow._lock_definitions();
        if not exists (select from pgflow.flows f where f.flow_slug = v_flow) then
            perform pgflow._define_flow(v_flow, shape, v_mode, v_routes);
            v_status := 'compiled';
        else
            select d.started_at into v_deletion from pgflow.flow_deletions d where d.flow_slug = v_flow;
            perform pgflow._assert_flow_stays(v_flow, v_deletion);
            v_differences := pgflow._shape_differences(shape, pgflow._flow_shape(v_flow));
            if v_differences = '{}' then
                v_kind := 'routing';
                v_differences := pgflow._route_differences(v_flow, v_mode, v_routes);
            end if;
            if v_differences = '{}' then
                perform pgflow._assert_queues(
                    v_flow,
                    array(select q.queue_name from pgflow.flow_queues q where q.flow_slug = v_flow order by q.step_index),
                    owned => true
                );
                v_status := 'verified';
            elsif not v_is_local then
                v_status := 'mismatch';
            else
                v_workers := pgflow._drain_flow(v_flow);
                if v_workers <> '[]' then
                    v_status := 'draining';
                else
                    -- The functions of a flow that continues stay as they are: one that is disabled
                    -- must not start for it.
                    v_functions := array(select w from pgflow.worker_functions w);
                    perform pgflow.delete_flow_and_data(v_flow);
                    insert into pgflow.worker_functions select k.* from unnest(v_functions) k on conflict do nothing;
                    perform pgflow._define_flow(v_flow, shape, v_mode, v_routes);
                    v_status := 'recompiled';
                end if;
            end if;
        end if;
    end if;

    if v_status = 'verified' and v_is_local then
        v_followed := pgflow._follow_options(v_flow, shape);
    elsif v_status = 'verified' then
        v_options := pgflow._option_differences(v_flow, shape);
        if v_options = '{}' then
            delete from pgflow.option_notices n where n.flow_slug = v_flow;
        else
            v_updates := pgflow._option_updates(v_flow, shape);
            insert into pgflow.option_notices as n (flow_slug, differences) values (v_flow, v_options)
            on conflict (flow_slug) do update set differences = excluded.differences, noted_at = now()
            where n.differences <> excluded.differences;
            v_is_news := found;
        end if;
    end if;

    return jsonb_build_object(
        'status', v_status,
        'differences', to_jsonb(coalesce(v_differences, '{}')),
        'mismatch_kind', case when v_status in ('mismatch', 'draining', 'recompiled') then v_kind end,
        'options_differ', to_jsonb(v_options),
        'workers', v_workers
    )
    || case when v_options <> '{}' then jsonb_build_object('option_updates', to_jsonb(v_updates), 'options_are_news', v_is_news) else '{}' end
    || case when v_followed > 0 then '{"options_followed": true}'::jsonb else '{}' end;
end
$$;
