-- Gives a flow and its steps the options of its code, as if they were defined anew. Returns how
-- many rows that changed. Raises PF004 (an option out of its bounds).
-- Locks: needs the definition lock; the flow's and the steps' rows. Callers: ensure_flow_compiled,
-- in a local database.
create or replace function pgflow._follow_options(flow_slug text, shape jsonb) returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    v_options jsonb := coalesce(shape -> 'options', '{}');
    v_flows bigint;
    v_steps bigint;
begin
    perform pgflow._assert_options(
        'flow ' || _follow_options.flow_slug,
        (v_options ->> 'maxAttempts')::int, (v_options ->> 'baseDelay')::int, (v_options ->> 'timeout')::int, null,
        (v_options ->> 'maxDelay')::int, (v_options ->> 'giveUpAfter')::int
    );
    perform pgflow._assert_options(
        'step ' || (e ->> 'slug'), (e #>> '{options,maxAttempts}')::int, (e #>> '{options,baseDelay}')::int,
        (e #>> '{options,timeout}')::int, (e #>> '{options,startDelay}')::int,
        (e #>> '{options,maxDelay}')::int, (e #>> '{options,giveUpAfter}')::int
    )
    from jsonb_array_elements(shape -> 'steps') e;

    update pgflow.flows f
    set
        opt_max_attempts = n.max_attempts, opt_base_delay = n.base_delay, opt_timeout = n.timeout,
        opt_max_delay = n.max_delay, opt_give_up_after = n.give_up_after
    from (
        select
            coalesce((v_options ->> 'maxAttempts')::int, 3) as max_attempts,
            coalesce((v_options ->> 'baseDelay')::int, 5) as base_delay,
            coalesce((v_options ->> 'timeout')::int, 60) as timeout,
            coalesce((v_options ->> 'maxDelay')::int, 3600) as max_delay,
            coalesce((v_options ->> 'giveUpAfter')::int, 86400) as give_up_after
    ) n
    where f.flow_slug = _follow_options.flow_slug
        and (f.opt_max_attempts, f.opt_base_delay, f.opt_timeout, f.opt_max_delay, f.opt_give_up_after)
            is distinct from (n.max_attempts, n.base_delay, n.timeout, n.max_delay, n.give_up_after);
    get diagnostics v_flows = row_count;

    update pgflow.steps s
    set
        opt_max_attempts = n.max_attempts, opt_base_delay = n.base_delay, opt_timeout = n.timeout, opt_start_delay = n.start_delay,
        opt_max_delay = n.max_delay, opt_give_up_after = n.give_up_after
    from (
        select
            e ->> 'slug' as slug,
            (e #>> '{options,maxAttempts}')::int as max_attempts, (e #>> '{options,baseDelay}')::int as base_delay,
            (e #>> '{options,timeout}')::int as timeout, (e #>> '{options,startDelay}')::int as start_delay,
            (e #>> '{options,maxDelay}')::int as max_delay, (e #>> '{options,giveUpAfter}')::int as give_up_after
        from jsonb_array_elements(shape -> 'steps') e
    ) n
    where s.flow_slug = _follow_options.flow_slug and s.step_slug = n.slug
        and (s.opt_max_attempts, s.opt_base_delay, s.opt_timeout, s.opt_start_delay, s.opt_max_delay, s.opt_give_up_after)
            is distinct from (n.max_attempts, n.base_delay, n.timeout, n.start_delay, n.max_delay, n.give_up_after);
    get diagnostics v_steps = row_count;
    return v_flows + v_steps;
end
$$;
