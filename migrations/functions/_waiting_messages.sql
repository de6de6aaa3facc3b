-- How many messages of a queue can be read now, and since when the oldest of them could be. Both NULL when there is no such queue.
-- Locks: none. Callers: view pgflow.coverage.
create or replace function pgflow._waiting_messages(queue_name text, out messages bigint, out oldest_at timestamptz)
language plpgsql stable
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if to_regclass(format('pgmq.%I', 'q_' || queue_name)) is not null then
        execute format('select count(*), min(q.vt) from pgmq.%I q where q.vt <= clock_timestamp()', 'q_' || queue_name)
        into messages, oldest_at;
    end if;
end
$$;
