-- Locks a flow to the end of the transaction: shared for starts of its runs and workers, exclusive
-- to delete it or to add to it. The flow's row will not do: a report that ends a run changes the
-- run's row twice, for which Postgres checks the foreign key again and locks the flow's row with
-- the run's in its hand; and starts would wait for whoever tunes an option.
-- Locks: advisory (0x7067666d, the flow's hash), before runs. Callers: start_flow, register_worker;
-- add_step, _drain_flow, delete_flow_and_data.
create or replace function pgflow._lock_flow(flow_slug text, alone boolean) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    if alone then
        perform pg_advisory_xact_lock(x'7067666d'::int, hashtext(flow_slug));
    else
        perform pg_advisory_xact_lock_shared(x'7067666d'::int, hashtext(flow_slug));
    end if;
end
$$;
