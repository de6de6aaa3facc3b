-- The one lock of all definition writers, held to the end of the transaction: two flows may race
-- for one queue name. Raises PF011 unless each statement sees what was committed before it: else
-- whoever waited here would continue without what it waited for, and take the queues of a flow that
-- was just compiled for somebody else's, or miss a run that was just started.
-- Locks: advisory (0x7067666c, 1). Callers: create_flow, add_step, ensure_flow_compiled,
-- delete_flow_and_data.
create or replace function pgflow._lock_definitions() returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
        raise exception 'a definition can not be written or compared in a transaction of isolation level %', current_setting('transaction_isolation') using
            errcode = 'PF011',
            hint = 'Begin it with: begin transaction isolation level read committed.';
    end if;
    perform pg_advisory_xact_lock(x'7067666c'::int, 1);
end
$$;
