-- The one lock of all definition writers, held to the end of the transaction: two flows may race for one queue name.
-- Locks: advisory (0x7067666c, 1). Callers: create_flow, add_step, ensure_flow_compiled.
create or replace function pgflow._lock_definitions() returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    perform pg_advisory_xact_lock(x'7067666c'::int, 1);
end
$$;
