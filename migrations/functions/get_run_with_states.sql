-- A run and its steps in the order of the definition: {"run": .., "steps": [..]}, each with the
-- columns of its row. NULL for an unknown run.
-- Locks: none. Callers: clients.
create or replace function pgflow.get_run_with_states(run_id uuid) returns jsonb
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    return (
        select jsonb_build_object(
            'run', to_jsonb(r),
            'steps', coalesce((
                select jsonb_agg(to_jsonb(s) order by d.step_index)
                from pgflow.step_states s
                join pgflow.steps d on d.flow_slug = s.flow_slug and d.step_slug = s.step_slug
                where s.run_id = r.run_id
            ), '[]')
        )
        from pgflow.runs r
        where r.run_id = get_run_with_states.run_id
    );
end
$$;
