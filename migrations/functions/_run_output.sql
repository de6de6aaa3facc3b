-- The output of a run whose steps have all ended, where it is not certain to be small: the object
-- of its completed leaf steps' outputs, null when there are none. A text says why there can't be
-- one: the outputs are together larger than JSON can be (256 MB), or than can be read back.
-- Locks: none. Callers: _settle_steps.
create or replace function pgflow._run_output(flow_slug text, run_id uuid) returns jsonb
language plpgsql stable
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
    v_output jsonb;
begin
    select jsonb_object_agg(s.step_slug, s.output) into v_output
    from pgflow.step_states s
    where s.run_id = _run_output.run_id and s.status = 'completed'
        and not exists (select from pgflow.deps d where d.flow_slug = _run_output.flow_slug and d.dep_slug = s.step_slug);
    -- A client reads it as text, of which Postgres sends less than 1 GB.
    perform octet_length(v_output::text);
    return v_output;
exception when program_limit_exceeded then
    return to_jsonb(format(
        'the outputs of the run''s last steps (%s) are together larger than a JSON value can be (256 MB)',
        (
            select string_agg(format('"%s"', s.step_slug), ', ' order by s.step_slug)
            from pgflow.step_states s
            where s.run_id = _run_output.run_id and s.status = 'completed'
                and not exists (select from pgflow.deps d where d.flow_slug = _run_output.flow_slug and d.dep_slug = s.step_slug)
        )
    ));
end
$$;
