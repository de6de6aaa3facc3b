-- The value of an end step's parameter `end`: `status`; `failed_step` and `error`, NULL unless the
-- run failed; `outputs`, the object of all completed steps' outputs. None of these contains end
-- steps.
-- Locks: none. Callers: _start_claimed, _readable_input.
create or replace function pgflow._run_end(run_id uuid) returns jsonb
language plpgsql stable
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
begin
    return (
        select jsonb_build_object(
            'status', r.status,
            'failed_step', min(s.step_slug) filter (where s.status = 'failed'),
            'error', r.error_message,
            'outputs', coalesce(jsonb_object_agg(s.step_slug, s.output) filter (where s.status = 'completed'), '{}')
        )
        from pgflow.runs r
        left join lateral (
            select k.step_slug, k.status, k.output
            from pgflow.step_states k
            where k.run_id = r.run_id and k.status in ('completed', 'failed')
                and not exists (
                    select from pgflow.steps d where d.flow_slug = r.flow_slug and d.step_slug = k.step_slug and d.runs_on is not null
                )
            offset 0
        ) s on true
        where r.run_id = _run_end.run_id
        group by r.run_id
    );
end
$$;
