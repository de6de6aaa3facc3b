-- Stores the flow that a shape describes and creates its queues, all names checked before. The
-- shape's layout, its slugs and its routes have been checked. Raises PF004 (graph, option, pattern,
-- mode), PF006 (queue collision).
-- Locks: needs the definition lock. Callers: ensure_flow_compiled.
create or replace function pgflow._define_flow(flow_slug text, shape jsonb, queue_mode text, routes jsonb) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    v_flow text := _define_flow.flow_slug;
    v_options jsonb := coalesce(shape -> 'options', '{}');
    v_queues text[];
    v_step record;
begin
    perform pgflow._assert_flow_slug_is_free(v_flow);
    v_queues := case
        when _define_flow.queue_mode = 'flow' then array[lower(v_flow collate "C")]
        else array(select e ->> 'queue' from jsonb_array_elements(routes) e)
    end;
    perform pgflow._assert_queues(v_flow, v_queues, owned => false);
    perform pgflow._assert_options(
        'flow ' || v_flow, (v_options ->> 'maxAttempts')::int, (v_options ->> 'baseDelay')::int, (v_options ->> 'timeout')::int, null,
        (v_options ->> 'maxDelay')::int, (v_options ->> 'giveUpAfter')::int
    );
    perform pgflow._create_queues(v_flow, v_queues);
    insert into pgflow.flows (flow_slug, queue_mode, opt_max_attempts, opt_base_delay, opt_timeout, opt_max_delay, opt_give_up_after)
    values (
        v_flow, _define_flow.queue_mode,
        coalesce((v_options ->> 'maxAttempts')::int, 3), coalesce((v_options ->> 'baseDelay')::int, 5), coalesce((v_options ->> 'timeout')::int, 60),
        coalesce((v_options ->> 'maxDelay')::int, 3600), coalesce((v_options ->> 'giveUpAfter')::int, 86400)
    );
    for v_step in
        select s.step, r.route ->> 'queue' as queue
        from jsonb_array_elements(shape -> 'steps') with ordinality as s (step, n)
        join jsonb_array_elements(routes) with ordinality as r (route, n) on r.n = s.n
        order by s.n
    loop
        perform pgflow._define_step(
            v_flow,
            v_step.step ->> 'slug',
            array(select jsonb_array_elements_text(v_step.step -> 'dependencies')),
            (v_step.step #>> '{options,maxAttempts}')::int,
            (v_step.step #>> '{options,baseDelay}')::int,
            (v_step.step #>> '{options,timeout}')::int,
            (v_step.step #>> '{options,startDelay}')::int,
            v_step.step ->> 'stepType',
            v_step.step #> '{requiredInputPattern,value}',
            v_step.step #> '{forbiddenInputPattern,value}',
            v_step.step ->> 'whenUnmet',
            v_step.step ->> 'whenExhausted',
            v_step.queue,
            (v_step.step #>> '{options,maxDelay}')::int,
            (v_step.step #>> '{options,giveUpAfter}')::int,
            v_step.step ->> 'onElementFailure',
            v_step.step ->> 'runsOn'
        );
    end loop;
end
$$;
