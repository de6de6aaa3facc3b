-- Starts a run. The same run_id again returns the run that exists and changes nothing.
-- Raises PF001 (unknown flow), PF005 (no input, or not the array that a root map needs), PF009 (an input that no worker could be handed, run_id used by another flow).
-- Locks: as start_flows. Callers: clients, SQL users.
create or replace function pgflow.start_flow(flow_slug text, input jsonb, run_id uuid default null) returns setof pgflow.runs
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    perform pgflow._assert_printable(start_flow.input, 'the input');
    return query
    select r.* from pgflow.start_flows(start_flow.flow_slug, array[start_flow.input], array[start_flow.run_id]) r;
end
$$;
