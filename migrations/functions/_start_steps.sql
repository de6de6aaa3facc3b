-- Starts steps that are ready and have tasks, `tasks` together. Conditions have been evaluated and empty maps completed before.
-- Locks: needs the runs' rows; takes step states. Callers: _advance_runs.
create or replace function pgflow._start_steps(run_ids uuid[], step_slugs text[], tasks bigint) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
    v_count int;
begin
    update pgflow.step_states s
    set status = 'started', started_at = greatest(clock_timestamp(), s.created_at), remaining_tasks = s.initial_tasks
    from unnest(_start_steps.run_ids, _start_steps.step_slugs) as x (run_id, step_slug)
    -- Each row is looked up by itself: see _advance_runs.
    cross join lateral (
        select k.ctid from pgflow.step_states k where k.run_id = x.run_id and k.step_slug = x.step_slug and k.status = 'created' limit 1
    ) k
    where s.ctid = k.ctid;
    get diagnostics v_count = row_count;
    if v_count <> cardinality(run_ids) then
        raise exception 'starting % steps changed % rows', cardinality(run_ids), v_count using errcode = 'PF012';
    end if;
    perform pgflow._queue_tasks(run_ids, step_slugs, tasks);
end
$$;
