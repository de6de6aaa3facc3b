-- Raises PF001 when the flow is being deleted, batch by batch (it has a row in flow_deletions):
-- nothing of it starts any more.
-- Locks: none. Callers: start_flows, register_worker, ensure_flow_compiled.
create or replace function pgflow._assert_flow_stays(flow_slug text, deletion_started_at timestamptz) returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
    if deletion_started_at is not null then
        raise exception 'flow "%" is being deleted since %', flow_slug, deletion_started_at using
            errcode = 'PF001',
            hint = 'Call pgflow.delete_flow_batch, or run "pgflow delete-flow", until it is gone; then define it anew.';
    end if;
end
$$;
