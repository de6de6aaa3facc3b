-- Trigger of late_wakeups, at the end of the transaction: notifies the workers of a queue that had
-- been notified just before, if that is long ago by now. With the owner's rights: at the end of a
-- transaction they are the caller's.
-- Locks: wakeups, skipping what another session holds. Callers: trigger late_wakeups_at_commit.
create or replace function pgflow._wake_late() returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    -- Those of this transaction: others see none, and only the first of a queue finds any.
    delete from pgflow.late_wakeups l where l.queue_name = new.queue_name;
    if not found or exists (
        select from pgflow.wakeups w
        where w.queue_name = new.queue_name
            and w.notified_at > clock_timestamp() - interval '20 milliseconds' and w.notified_at <= clock_timestamp()
    ) or pg_notification_queue_usage() >= 0.5 then
        return null;
    end if;
    if current_setting('transaction_isolation') = 'read committed' then
        update pgflow.wakeups w
        set notified_at = clock_timestamp()
        where w.queue_name = (
            select x.queue_name from pgflow.wakeups x where x.queue_name = new.queue_name for no key update skip locked
        );
    end if;
    perform pg_notify('pgflow_work', new.queue_name);
    return null;
end
$$;
