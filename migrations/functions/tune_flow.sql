-- Sets options of a flow, or of one of its steps, for all attempts that start from now on; those
-- that are NULL stay as they are. Only a step has a start delay. In a local database the next
-- worker that starts sets the options of its code again. Raises PF001 (unknown flow), PF003
-- (unknown step), PF004 (an option out of its bounds), PF009 (no option, or a start delay without a
-- step).
-- Locks: the flow's or the step's row. Callers: operators.
create or replace function pgflow.tune_flow(
    flow_slug text,
    step_slug text default null,
    max_attempts int default null,
    base_delay int default null,
    timeout int default null,
    start_delay int default null,
    max_delay int default null,
    give_up_after int default null
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    if num_nonnulls(max_attempts, base_delay, timeout, start_delay, max_delay, give_up_after) = 0 then
        raise exception 'no option was given' using
            errcode = 'PF009',
            hint = 'Pass at least one of max_attempts, base_delay, max_delay, give_up_after, timeout and, of a step, start_delay.';
    end if;
    if step_slug is null and start_delay is not null then
        raise exception 'a flow has no start delay' using errcode = 'PF009', hint = 'Name the step that starts later.';
    end if;
    if not exists (select from pgflow.flows f where f.flow_slug = tune_flow.flow_slug) then
        raise exception 'flow "%" is not defined in this database', tune_flow.flow_slug using
            errcode = 'PF001',
            hint = 'Nothing was changed. The flows are in pgflow.flows.';
    end if;
    perform pgflow._assert_options(
        coalesce('step ' || tune_flow.step_slug, 'flow ' || tune_flow.flow_slug),
        tune_flow.max_attempts, tune_flow.base_delay, tune_flow.timeout, tune_flow.start_delay, tune_flow.max_delay, tune_flow.give_up_after
    );
    if step_slug is null then
        update pgflow.flows f
        set
            opt_max_attempts = coalesce(tune_flow.max_attempts, f.opt_max_attempts),
            opt_base_delay = coalesce(tune_flow.base_delay, f.opt_base_delay),
            opt_timeout = coalesce(tune_flow.timeout, f.opt_timeout),
            opt_max_delay = coalesce(tune_flow.max_delay, f.opt_max_delay),
            opt_give_up_after = coalesce(tune_flow.give_up_after, f.opt_give_up_after)
        where f.flow_slug = tune_flow.flow_slug;
        return;
    end if;
    update pgflow.steps s
    set
        opt_max_attempts = coalesce(tune_flow.max_attempts, s.opt_max_attempts),
        opt_base_delay = coalesce(tune_flow.base_delay, s.opt_base_delay),
        opt_timeout = coalesce(tune_flow.timeout, s.opt_timeout),
        opt_start_delay = coalesce(tune_flow.start_delay, s.opt_start_delay),
        opt_max_delay = coalesce(tune_flow.max_delay, s.opt_max_delay),
        opt_give_up_after = coalesce(tune_flow.give_up_after, s.opt_give_up_after)
    where s.flow_slug = tune_flow.flow_slug and s.step_slug = tune_flow.step_slug;
    if not found then
        raise exception 'flow "%" has no step "%"', tune_flow.flow_slug, tune_flow.step_slug using
            errcode = 'PF003',
            hint = 'Nothing was changed. Its steps: ' || coalesce((
                select string_agg(s.step_slug, ', ' order by s.step_index) from pgflow.steps s where s.flow_slug = tune_flow.flow_slug
            ), 'none') || '.';
    end if;
end
$$;
