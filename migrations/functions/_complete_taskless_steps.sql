-- Completes, with `[]`, the map steps that are ready and have nothing to run over: one wave.
-- Returns how many.
-- Locks: needs the runs' rows; takes step states. Callers: _advance_runs.
create or replace function pgflow._complete_taskless_steps(run_ids uuid[]) returns int
language plpgsql
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
    v_run_ids uuid[];
    v_slugs text[];
    v_now timestamptz := clock_timestamp();
    v_count int;
begin
    select array_agg(x.run_id), array_agg(x.step_slug) into v_run_ids, v_slugs
    from (
        select s.run_id, s.step_slug
        from (select distinct u as run_id from unnest(_complete_taskless_steps.run_ids) u) i
        cross join lateral (select from pgflow.runs k where k.run_id = i.run_id and k.status = 'started' limit 1) r
        cross join lateral (
            select k.run_id, k.step_slug
            from pgflow.step_states k
            where k.run_id = i.run_id and k.status = 'created' and k.remaining_deps = 0 and k.initial_tasks = 0
            offset 0
        ) s
        order by s.run_id, s.step_slug
    ) x;
    if v_run_ids is null then
        return 0;
    end if;
    update pgflow.step_states s
    set
        status = 'completed',
        started_at = greatest(v_now, s.created_at),
        completed_at = greatest(v_now, s.created_at),
        remaining_tasks = 0,
        output = '[]'
    from unnest(v_run_ids, v_slugs) as x (run_id, step_slug)
    cross join lateral (select k.ctid from pgflow.step_states k where k.run_id = x.run_id and k.step_slug = x.step_slug limit 1) k
    where s.ctid = k.ctid;
    get diagnostics v_count = row_count;
    perform pgflow._settle_steps(v_run_ids, v_slugs, 'step:completed');
    return v_count;
end
$$;
