-- How many messages of a queue can be read now, and since when the oldest of them could be. Both
-- NULL when no flow has such a queue, so that whoever may read the view learns nothing of other
-- queues.
-- Locks: none; waits for whoever drops the queue. Callers: view pgflow.coverage.
create or replace function pgflow._waiting_messages(queue_name text, out messages bigint, out oldest_at timestamptz)
language plpgsql stable
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if exists (select from pgflow.flow_queues q where q.queue_name = _waiting_messages.queue_name) then
        execute format('select count(*), min(q.vt) from pgmq.%I q where q.vt <= clock_timestamp()', 'q_' || queue_name)
        into messages, oldest_at;
    end if;
exception when undefined_table then
    -- Dropped, perhaps while this waited for it.
end
$$;
