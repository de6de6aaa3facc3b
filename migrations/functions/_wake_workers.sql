-- Notifies the workers of these queues that there may be work, by channel pgflow_work, with the
-- queue's name: at most once per queue in 20 ms, because notifications make transactions commit one
-- after the other. Listeners know that, and look again 30 and 75 ms after they were notified; and
-- whoever does not listen polls. So it does no harm when a notification is lost, and none is sent
-- while the queue of notifications is half full, which means that some session does not read it: a
-- full one makes each commit fail that notifies. A transaction of several statements that was too
-- early is asked again when it commits, by _wake_late.
-- Locks: wakeups, skipping what another session holds. Callers: _queue_tasks, _requeue_tasks.
create or replace function pgflow._wake_workers(queue_names text[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    v_due text[];
    v_late text[];
    v_queue text;
begin
    select
        array_agg(q.queue_name order by q.queue_name) filter (where q.is_due),
        array_agg(q.queue_name order by q.queue_name) filter (where not q.is_due)
    into v_due, v_late
    from (
        select u.queue_name, (w.notified_at > clock_timestamp() - interval '20 milliseconds' and w.notified_at <= clock_timestamp()) is not true as is_due
        from (select distinct u as queue_name from unnest(_wake_workers.queue_names) u) u
        left join pgflow.wakeups w on w.queue_name = u.queue_name
        where (select i.wakeups from pgflow.installation i where i.singleton)
    ) q;
    -- A statement by itself is committed before the listeners have looked for the last time. One of
    -- a transaction that began earlier, by as much as two messages of a client are apart at least,
    -- may be followed by others: it is asked again at its end.
    if v_late is not null and statement_timestamp() - now() > interval '100 microseconds' then
        insert into pgflow.late_wakeups (queue_name) select u from unnest(v_late) u;
    end if;
    if v_due is null or pg_notification_queue_usage() >= 0.5 then
        return;
    end if;
    foreach v_queue in array v_due loop
        -- In any other isolation, changing a row that somebody changed meanwhile makes the whole
        -- transaction fail: no hint is worth that.
        if current_setting('transaction_isolation') = 'read committed' then
            -- Who holds the row notifies when it commits, and nobody knows when that is: so this
            -- notifies as well.
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
