-- Notifies the workers of these queues that there may be work, by channel pgflow_work, with the queue's name: at most once per queue in 50 ms,
-- because notifications make transactions commit one after the other. Listeners know that, and look again 50 ms after they were notified;
-- and whoever does not listen polls. So it does no harm when a notification is lost.
-- Locks: wakeups, skipping what somebody else holds. Callers: _start_ready_steps, release_tasks, requeue_stalled_tasks.
create or replace function pgflow._wake_workers(queue_names text[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    v_queue text;
    v_notified_at timestamptz;
begin
    if not (select i.wakeups from pgflow.installation i where i.singleton) then
        return;
    end if;
    for v_queue in select distinct q from unnest(_wake_workers.queue_names) q order by q loop
        -- In any other isolation, changing a row that somebody changed meanwhile makes the whole transaction fail: no hint is worth that.
        if current_setting('transaction_isolation') = 'read committed' then
            select w.notified_at into v_notified_at from pgflow.wakeups w where w.queue_name = v_queue;
            continue when v_notified_at > clock_timestamp() - interval '50 milliseconds' and v_notified_at <= clock_timestamp();
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
