-- Carries runs on as far as they go without a worker: evaluates conditions, completes steps without tasks, starts steps that are
-- ready, finishes runs. Loops until nothing changes, so a step never leaves `created` before its condition was evaluated, whatever
-- made it ready, and no depth is too deep. Returns whether new tasks were queued.
-- Locks: needs the runs' rows; takes step states. Callers: start_flow, complete_tasks, _exhaust_task.
create or replace function pgflow._advance_runs(run_ids uuid[]) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
    v_conditional boolean;
    v_taskless boolean;
    v_ready boolean;
begin
    loop
        -- Never NULL, as bool_or is when no step is ready: `and` would go on to call the function.
        select
            coalesce(bool_or(d.required_input_pattern is not null or d.forbidden_input_pattern is not null), false),
            coalesce(bool_or(s.initial_tasks = 0), false),
            coalesce(bool_or(s.initial_tasks > 0), false)
        into v_conditional, v_taskless, v_ready
        from pgflow.step_states s
        join pgflow.runs r on r.run_id = s.run_id
        join pgflow.steps d on d.flow_slug = s.flow_slug and d.step_slug = s.step_slug
        where s.run_id = any (_advance_runs.run_ids) and s.status = 'created' and s.remaining_deps = 0 and r.status = 'started';

        continue when v_conditional and pgflow._resolve_conditions(run_ids) > 0;
        continue when v_taskless and pgflow._complete_taskless_steps(run_ids) > 0;
        exit;
    end loop;
    if v_ready then
        perform pgflow._start_ready_steps(run_ids);
    end if;
    perform pgflow._finish_runs(run_ids);
    return v_ready;
end
$$;
