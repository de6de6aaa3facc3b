-- Notifies the workers of these queues that there may be work, by channel pgflow_work, with the queue's name: at most once per queue in 20 ms,
-- because notifications make transactions commit one after the other. Listeners know that, and look again 30 and 75 ms after they were notified;
-- and whoever does not listen polls. So it does no harm when a notification is lost, and none is sent while the queue of notifications is half full,
-- which means that some session does not read it: a full one makes each commit fail that notifies.
-- Locks: wakeups, skipping what somebody else holds. Callers: _queue_tasks, _requeue_tasks.
create or replace function pgflow._wake_workers(queue_names text[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    v_due text[];
    v_queue text;
begin
    select array_agg(q.queue_name order by q.queue_name) into v_due
    from (select distinct u as queue_name from unnest(_wake_workers.queue_names) u) q
    left join pgflow.wakeups w on w.queue_name = q.queue_name
    where (select i.wakeups from pgflow.installation i where i.singleton)
        and (w.notified_at > clock_timestamp() - interval '20 milliseconds' and w.notified_at <= clock_timestamp()) is not true;
    if v_due is null or pg_notification_queue_usage() >= 0.5 then
        return;
    end if;
    foreach v_queue in array v_due loop
        -- In any other isolation, changing a row that somebody changed meanwhile makes the whole transaction fail: no hint is worth that.
        if current_setting('transaction_isolation') = 'read committed' then
            -- Who holds the row notifies when it commits, and nobody knows when that is: so this notifies as well.
            update pgflow.wakeups w
            set notified_at = clock_timestamp()
            where w.queue_name = (
                select x.queue_name from pgflow.wakeups x where x.queue_name = v_queue for no key update skip locked
            );
        end if;
        perform pg_notify('pgflow_work', v_queue);
    end loop;
end
$$;
