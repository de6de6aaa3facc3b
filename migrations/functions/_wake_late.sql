-- Trigger of late_wakeups, at the end of the transaction: wakes the workers of a queue that had been notified just before, if that is long ago by now.
-- With the owner's rights: at the end of a transaction they are the caller's.
-- Locks: as _wake_workers. Callers: trigger late_wakeups_at_commit.
create or replace function pgflow._wake_late() returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    -- Rows of other transactions are not visible, as none is ever committed. What comes from here on finds none.
    delete from pgflow.late_wakeups l where l.queue_name = new.queue_name;
    if found then
        perform pgflow._wake_workers(array[new.queue_name]);
    end if;
    return null;
end
$$;
