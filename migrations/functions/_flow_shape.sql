-- The stored shape of a flow, as startup sends it but without options; an unknown flow has no
-- steps.
-- Locks: none. Callers: ensure_flow_compiled.
create or replace function pgflow._flow_shape(flow_slug text) returns jsonb
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    return jsonb_build_object('steps', coalesce((
        select jsonb_agg(
            jsonb_build_object(
                'slug', s.step_slug,
                'stepType', s.step_type,
                'dependencies', coalesce((
                    select jsonb_agg(d.dep_slug order by d.dep_slug collate "C")
                    from pgflow.deps d
                    where d.flow_slug = s.flow_slug and d.step_slug = s.step_slug
                ), '[]'),
                'whenUnmet', s.when_unmet,
                'whenExhausted', s.when_exhausted,
                'requiredInputPattern', case when s.required_input_pattern is null then '{"defined": false}'
                    else jsonb_build_object('defined', true, 'value', s.required_input_pattern) end,
                'forbiddenInputPattern', case when s.forbidden_input_pattern is null then '{"defined": false}'
                    else jsonb_build_object('defined', true, 'value', s.forbidden_input_pattern) end
            ) || case
                -- As workers send it, those of older releases too.
                when s.on_element_failure = 'fail' then '{}'
                else jsonb_build_object('onElementFailure', s.on_element_failure)
            end || case when s.runs_on is null then '{}'::jsonb else jsonb_build_object('runsOn', s.runs_on) end
            order by s.step_index
        )
        from pgflow.steps s
        where s.flow_slug = _flow_shape.flow_slug
    ), '[]'));
end
$$;
