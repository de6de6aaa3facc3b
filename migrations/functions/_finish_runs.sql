-- Completes the runs that have no step left. A run's output is the object of its completed leaf steps' outputs, null when all were
-- skipped or there are none.
-- Locks: needs the runs' rows. Callers: _advance_runs.
create or replace function pgflow._finish_runs(run_ids uuid[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
    v_finished uuid[];
    v_count int;
begin
    select array_agg(r.run_id order by r.run_id) into v_finished
    from pgflow.runs r
    where r.run_id = any (_finish_runs.run_ids) and r.status = 'started' and r.remaining_steps = 0;
    if v_finished is null then
        return;
    end if;
    update pgflow.runs r
    set
        status = 'completed',
        completed_at = greatest(clock_timestamp(), r.started_at),
        output = (
            select jsonb_object_agg(s.step_slug, s.output)
            from pgflow.step_states s
            where s.run_id = r.run_id and s.status = 'completed'
                and not exists (select from pgflow.deps d where d.flow_slug = r.flow_slug and d.dep_slug = s.step_slug)
        )
    where r.run_id = any (v_finished);
    get diagnostics v_count = row_count;
    if v_count <> cardinality(v_finished) then
        raise exception 'finishing % runs changed % rows', cardinality(v_finished), v_count using errcode = 'PF012';
    end if;
    perform pgflow._emit_events(array_fill('run:completed'::text, array[v_count]), v_finished, array_fill(null::text, array[v_count]));
end
$$;
