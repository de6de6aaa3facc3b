-- Decides the conditions of steps whose dependencies are settled. An unmet condition fails the run
-- (before anything is skipped, the lowest step first), skips the step, or skips it and all that
-- depend on it; a met one changes nothing. The subject is the run's input for roots, else the
-- object of completed dependency outputs; with none (see _dependency_outputs) a condition counts as
-- met, and the step's attempts fail. Returns how many steps left `created`.
-- Locks: needs the runs' rows; takes step states. Callers: _advance_runs.
create or replace function pgflow._resolve_conditions(run_ids uuid[]) returns int
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    v_unmet record;
    v_failed uuid[] := '{}';
    v_settled int := 0;
begin
    for v_unmet in
        select s.run_id, s.step_slug, d.when_unmet
        from (select distinct u as run_id from unnest(_resolve_conditions.run_ids) u) i
        cross join lateral (select k.flow_slug, k.input from pgflow.runs k where k.run_id = i.run_id and k.status = 'started' limit 1) r
        cross join lateral (
            select k.flow_slug, k.run_id, k.step_slug
            from pgflow.step_states k
            where k.run_id = i.run_id and k.status = 'created' and k.remaining_deps = 0
            offset 0
        ) s
        cross join lateral (
            select k.deps_count, k.required_input_pattern, k.forbidden_input_pattern, k.when_unmet, k.step_index
            from pgflow.steps k
            where k.flow_slug = r.flow_slug and k.step_slug = s.step_slug
            limit 1
        ) d
        cross join lateral (
            select case when d.deps_count = 0 then r.input else pgflow._dependency_outputs(s.flow_slug, s.run_id, s.step_slug) end as subject
        ) c
        where (not c.subject @> d.required_input_pattern or c.subject @> d.forbidden_input_pattern)
        order by d.when_unmet = 'fail' desc, s.run_id, d.step_index
    loop
        continue when v_unmet.run_id = any (v_failed);
        if v_unmet.when_unmet = 'fail' then
            perform pgflow._fail_run(v_unmet.run_id, v_unmet.step_slug, null, 'Condition not met');
            v_failed := v_failed || v_unmet.run_id;
            v_settled := v_settled + 1;
        else
            begin
                v_settled := v_settled
                    + pgflow._skip_steps(v_unmet.run_id, v_unmet.step_slug, 'condition_unmet', null, cascade => v_unmet.when_unmet = 'skip-cascade');
            exception when sqlstate 'PF009' then
                -- The run would end, with an output that can't be stored: see _settle_steps.
                perform pgflow._fail_run(v_unmet.run_id, v_unmet.step_slug, null, sqlerrm);
                v_failed := v_failed || v_unmet.run_id;
                v_settled := v_settled + 1;
            end;
        end if;
    end loop;
    return v_settled;
end
$$;
