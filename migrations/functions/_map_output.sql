-- The outputs of a map's tasks, in the order of its elements, with a null for each task that
-- failed. NULL when they are together larger than JSON can be (256 MB).
-- Locks: none. Callers: complete_tasks, _fail_element.
create or replace function pgflow._map_output(run_id uuid, step_slug text) returns jsonb
language plpgsql stable
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
begin
    return (
        select coalesce(jsonb_agg(t.output order by t.task_index), '[]')
        from pgflow.step_tasks t
        where t.run_id = _map_output.run_id and t.step_slug = _map_output.step_slug
    );
exception when program_limit_exceeded then
    return null;
end
$$;
