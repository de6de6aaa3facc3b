-- Appends a step to a plain flow; its dependencies must stand before it. The same call again
-- returns the step as it is stored; a call that would change its structure is refused, and so is a
-- new step once the flow has runs: a shape is immutable. `runs_on`: `failure` or `end` for a step
-- that runs when the run has ended; at most one of each in a flow. Options (attempts, delays,
-- timeout) of a stored step are never changed here; update pgflow.steps to tune them. Raises PF001
-- (flow), PF004 (slug, graph, option, pattern, mode), PF011 (a flow with step queues).
-- Locks: definitions, the flow, its row. Callers: SQL users.
create or replace function pgflow.add_step(
    flow_slug text,
    step_slug text,
    deps_slugs text[] default '{}',
    max_attempts int default null,
    base_delay int default null,
    timeout int default null,
    start_delay int default null,
    step_type text default 'single',
    required_input_pattern jsonb default null,
    forbidden_input_pattern jsonb default null,
    when_unmet text default 'skip',
    when_exhausted text default 'fail',
    max_delay int default null,
    give_up_after int default null,
    on_element_failure text default 'fail',
    runs_on text default null
) returns setof pgflow.step_record
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    v_flow pgflow.flows;
begin
    perform pgflow._assert_slug('step', add_step.step_slug);
    perform pgflow._lock_definitions();
    select f.* into v_flow from pgflow.flows f where f.flow_slug = add_step.flow_slug;
    if not found then
        raise exception 'flow "%" is not defined', add_step.flow_slug using errcode = 'PF001', hint = 'Call pgflow.create_flow first.';
    end if;
    if v_flow.queue_mode = 'step' then
        raise exception 'flow "%" has a queue per step; add_step serves flows with one queue', v_flow.flow_slug using
            errcode = 'PF011',
            hint = 'Its definition comes from its workers.';
    end if;
    -- Here, and not for each step of a flow that is just being compiled, which can have no run: no
    -- index leads from a flow to its runs, so this may read a long history.
    if not exists (
        select from pgflow.steps s where s.flow_slug = v_flow.flow_slug and lower(s.step_slug collate "C") = lower(add_step.step_slug collate "C")
    ) then
        -- A run that is being started is waited for here, and one that starts later waits there.
        perform pgflow._lock_flow(v_flow.flow_slug, alone => true);
        if exists (select from pgflow.runs r where r.flow_slug = v_flow.flow_slug) then
            raise exception 'flow "%" has runs, so it can not get a new step "%"', v_flow.flow_slug, add_step.step_slug using
                errcode = 'PF004',
                hint = 'A shape is immutable. Define the new one under a new flow slug.';
        end if;
        -- Whoever started a transaction of REPEATABLE READ before this, and starts a run in it
        -- after, would not see the step: a row that was locked like this and then changed is
        -- refused there (40001).
        perform from pgflow.flows f where f.flow_slug = v_flow.flow_slug for update;
        update pgflow.flows f set flow_slug = f.flow_slug where f.flow_slug = v_flow.flow_slug;
    end if;
    return query
    select
        s.flow_slug, s.step_slug, s.step_type, s.step_index, s.deps_count, s.opt_max_attempts, s.opt_base_delay, s.opt_timeout, s.opt_start_delay,
        s.required_input_pattern, s.forbidden_input_pattern, s.when_unmet, s.when_exhausted, s.feeds_map, s.created_at, s.queue_name
    from pgflow._define_step(
        v_flow.flow_slug, add_step.step_slug, add_step.deps_slugs, add_step.max_attempts, add_step.base_delay, add_step.timeout,
        add_step.start_delay, add_step.step_type, add_step.required_input_pattern, add_step.forbidden_input_pattern,
        add_step.when_unmet, add_step.when_exhausted, lower(v_flow.flow_slug collate "C"), add_step.max_delay, add_step.give_up_after,
        add_step.on_element_failure,
        add_step.runs_on
    ) s;
end
$$;
