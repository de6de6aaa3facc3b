-- Completes, with `[]`, the map steps that are ready and have nothing to run over: one wave. Returns how many.
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
        from pgflow.step_states s
        join pgflow.runs r on r.run_id = s.run_id
        where s.run_id = any (_complete_taskless_steps.run_ids)
            and s.status = 'created' and s.remaining_deps = 0 and s.initial_tasks = 0 and r.status = 'started'
        order by s.run_id, s.step_slug
        for no key update of s
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
    where s.run_id = x.run_id and s.step_slug = x.step_slug;
    get diagnostics v_count = row_count;
    perform pgflow._settle_steps(v_run_ids, v_slugs, 'step:completed');
    return v_count;
end
$$;
