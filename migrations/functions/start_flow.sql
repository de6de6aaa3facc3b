-- Starts a run. The same run_id and input again return the run that exists and change nothing.
-- Raises PF001 (a flow that is unknown, or being deleted), PF005 (no input, or not an array that a
-- root map can take), PF009 (an input that can't be printed; a run_id that is used by another flow
-- or was started with another input).
-- Locks: as start_flows. Callers: clients, SQL users.
create or replace function pgflow.start_flow(flow_slug text, input jsonb, run_id uuid default null) returns setof pgflow.run_record
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    return query
    select r.run_id, r.flow_slug, r.status, r.input, r.output, r.error_message, r.remaining_steps,
        r.started_at, r.completed_at, r.failed_at
    from pgflow.start_flows(start_flow.flow_slug, array[start_flow.input], array[start_flow.run_id]) r;
end
$$;
