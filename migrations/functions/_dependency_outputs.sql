-- The object of a step's completed dependencies: slug -> output. A skipped dependency is absent.
-- NULL when they are together larger than JSON can be (256 MB): raising would block the queue,
-- since each claim would meet that task again.
-- Locks: none. Callers: _resolve_conditions, _readable_input.
create or replace function pgflow._dependency_outputs(flow_slug text, run_id uuid, step_slug text) returns jsonb
language plpgsql stable
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
begin
    return (
        select coalesce(jsonb_object_agg(p.step_slug, p.output), '{}')
        from pgflow.deps d
        cross join lateral (
            select k.step_slug, k.output
            from pgflow.step_states k
            where k.run_id = _dependency_outputs.run_id and k.step_slug = d.dep_slug and k.status = 'completed'
            limit 1
        ) p
        where d.flow_slug = _dependency_outputs.flow_slug and d.step_slug = _dependency_outputs.step_slug
    );
exception when program_limit_exceeded then
    return null;
end
$$;
