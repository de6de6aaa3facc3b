-- Hides each message for its own number of seconds, and counts the read as pgmq.read does unless that has counted it (`counted`).
-- Returns how many are in the queue.
-- Locks: queue rows that the caller's task locks stand for. Callers: _start_claimed, claim_tasks.
create or replace function pgflow._take_messages(queue_name text, message_ids bigint[], seconds int[], counted boolean) returns int
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    v_count int;
begin
    execute format(
        'update pgmq.%I q set vt = clock_timestamp() + make_interval(secs => m.secs), read_ct = q.read_ct + $3
         from unnest($1, $2) as m (msg_id, secs) where q.msg_id = m.msg_id',
        'q_' || lower(queue_name collate "C")
    ) using message_ids, seconds, case when counted then 0 else 1 end;
    get diagnostics v_count = row_count;
    return v_count;
end
$$;
