-- Carries runs on as far as they go without a worker: evaluates conditions, completes steps without
-- tasks, starts steps that are ready. Loops until nothing changes, so a step never leaves `created`
-- before its condition was evaluated, whatever made it ready, and no depth is too deep. A run that
-- this leaves without steps is finished by _settle_steps. Returns whether new tasks were queued.
-- Locks: needs the runs' rows; takes step states. Callers: start_flows, complete_tasks,
-- _exhaust_task, _fail_element.
create or replace function pgflow._advance_runs(run_ids uuid[]) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
    v_conditional boolean;
    v_taskless boolean;
    v_run_ids uuid[];
    v_slugs text[];
    v_places tid[];
    v_tasks bigint;
    v_count int;
begin
    loop
        -- Each row is looked up by itself; the limits see to that. As plain joins, planned when the
        -- tables were small, this reads all runs that ever were. Changes look for the row's place
        -- (ctid) first, for the same reason: it leaves one way to the row. The place can't change,
        -- as whoever changes the row holds the run's lock.
        select
            -- Never NULL, as bool_or is when no step is ready: `and` would continue to call the
            -- function.
            coalesce(bool_or(d.is_conditional), false),
            coalesce(bool_or(s.initial_tasks = 0), false),
            array_agg(s.run_id order by s.run_id, s.step_slug) filter (where s.initial_tasks > 0),
            array_agg(s.step_slug order by s.run_id, s.step_slug) filter (where s.initial_tasks > 0),
            array_agg(s.ctid order by s.run_id, s.step_slug) filter (where s.initial_tasks > 0),
            sum(s.initial_tasks)
        into v_conditional, v_taskless, v_run_ids, v_slugs, v_places, v_tasks
        from (select distinct u as run_id from unnest(_advance_runs.run_ids) u) x
        cross join lateral (select k.flow_slug, k.status from pgflow.runs k where k.run_id = x.run_id limit 1) r
        cross join lateral (
            select k.ctid, k.run_id, k.step_slug, k.initial_tasks
            from pgflow.step_states k
            where k.run_id = x.run_id and k.status = 'created' and k.remaining_deps = 0
            offset 0
        ) s
        cross join lateral (
            select k.required_input_pattern is not null or k.forbidden_input_pattern is not null as is_conditional
            from pgflow.steps k
            where k.flow_slug = r.flow_slug and k.step_slug = s.step_slug
            limit 1
        ) d
        where r.status = 'started';

        continue when v_conditional and pgflow._resolve_conditions(run_ids) > 0;
        continue when v_taskless and pgflow._complete_taskless_steps(run_ids) > 0;
        exit;
    end loop;
    if v_run_ids is null then
        return false;
    end if;

    update pgflow.step_states s
    set status = 'started', started_at = greatest(clock_timestamp(), s.created_at), remaining_tasks = s.initial_tasks
    from unnest(v_places) as x (place)
    where s.ctid = x.place and s.status = 'created';
    get diagnostics v_count = row_count;
    if v_count <> cardinality(v_places) then
        raise exception 'starting % steps changed % rows', cardinality(v_places), v_count using errcode = 'PF012';
    end if;
    perform pgflow._queue_tasks(v_run_ids, v_slugs, v_tasks);
    return true;
end
$$;
