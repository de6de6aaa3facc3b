-- What a worker asks for at startup: is the flow that its code describes the flow that this database stores?
-- compiled: it was missing and is stored now. verified: it is stored, and equal. mismatch: it is stored, and different; nothing changed.
-- Returns {status, differences, mismatch_kind, options_differ}.
-- Raises PF004 (a wrong shape), PF006 (queue collision), PF009 (a route map that does not follow from the shape), PF010, PF011.
-- Locks: definitions. Callers: workers.
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
    v_routes jsonb;
    v_step jsonb;
    v_differences text[];
begin
    if queue_mode is distinct from 'flow' then
        raise exception 'flow "%": queue mode "%" is not supported by this version of the schema', v_flow, queue_mode using
            errcode = 'PF011',
            hint = 'Remove with_step_queues from the flow.';
    end if;
    perform pgflow._assert_slug('flow', v_flow);
    perform pgflow._assert_shape(v_flow, shape);
    perform pgflow._lock_definitions();

    select coalesce(jsonb_agg(jsonb_build_object('step', e -> 'slug', 'queue', lower(v_flow)) order by n), '[]') into v_routes
    from jsonb_array_elements(shape -> 'steps') with ordinality as e (e, n);
    if route_map is not null and route_map <> v_routes then
        raise exception 'flow "%": the worker routes its steps to other queues than the database', v_flow using
            errcode = 'PF009',
            detail = format('worker: %s; database: %s', route_map, v_routes),
            hint = 'The worker was built with another version of pgflow. Build it with the version that the database was migrated with.';
    end if;

    if not exists (select from pgflow.flows f where f.flow_slug = v_flow) then
        perform pgflow._assert_step_slugs(v_flow, shape);
        perform pgflow.create_flow(
            v_flow,
            max_attempts => (shape #>> '{options,maxAttempts}')::int,
            base_delay => (shape #>> '{options,baseDelay}')::int,
            timeout => (shape #>> '{options,timeout}')::int
        );
        for v_step in select jsonb_array_elements(shape -> 'steps') loop
            perform pgflow.add_step(
                v_flow,
                v_step ->> 'slug',
                array(select jsonb_array_elements_text(v_step -> 'dependencies')),
                max_attempts => (v_step #>> '{options,maxAttempts}')::int,
                base_delay => (v_step #>> '{options,baseDelay}')::int,
                timeout => (v_step #>> '{options,timeout}')::int,
                start_delay => (v_step #>> '{options,startDelay}')::int,
                step_type => v_step ->> 'stepType',
                required_input_pattern => v_step #> '{requiredInputPattern,value}',
                forbidden_input_pattern => v_step #> '{forbiddenInputPattern,value}',
                when_unmet => v_step ->> 'whenUnmet',
                when_exhausted => v_step ->> 'whenExhausted'
            );
        end loop;
        return jsonb_build_object('status', 'compiled', 'differences', '[]'::jsonb, 'mismatch_kind', null, 'options_differ', '[]'::jsonb);
    end if;

    v_differences := pgflow._shape_differences(shape, pgflow._flow_shape(v_flow));
    if cardinality(v_differences) > 0 then
        return jsonb_build_object('status', 'mismatch', 'differences', to_jsonb(v_differences), 'mismatch_kind', 'shape', 'options_differ', '[]'::jsonb);
    end if;
    select array_agg(format('step "%s": queue %s in the code, %s in the database', s.step_slug, lower(v_flow), s.queue_name) order by s.step_index)
    into v_differences
    from pgflow.steps s
    where s.flow_slug = v_flow and s.queue_name <> lower(v_flow);
    if v_differences is not null then
        return jsonb_build_object('status', 'mismatch', 'differences', to_jsonb(v_differences), 'mismatch_kind', 'routing', 'options_differ', '[]'::jsonb);
    end if;
    perform pgflow._claim_queue_name(v_flow, lower(v_flow), owned => true);
    return jsonb_build_object('status', 'verified', 'differences', '[]'::jsonb, 'mismatch_kind', null,
        'options_differ', to_jsonb(pgflow._option_differences(v_flow, shape)));
end
$$;
