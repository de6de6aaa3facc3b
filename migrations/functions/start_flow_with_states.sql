-- Starts a run and returns it with its steps, as get_run_with_states does.
-- Raises and locks as start_flow. Callers: clients.
create or replace function pgflow.start_flow_with_states(flow_slug text, input jsonb, run_id uuid default null) returns jsonb
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    v_run_id uuid;
begin
    select r.run_id into strict v_run_id
    from pgflow.start_flow(start_flow_with_states.flow_slug, start_flow_with_states.input, start_flow_with_states.run_id) r;
    return pgflow.get_run_with_states(v_run_id);
end
$$;
