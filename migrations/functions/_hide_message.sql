-- Hides a message for a delay from now on, to the fraction of a second. Returns whether it is in
-- the queue; it is not when somebody removed it, or dropped the queue.
-- Locks: the queue row, blocking. Task rows come first. Callers: fail_task, postpone_task.
create or replace function pgflow._hide_message(queue_name text, message_id bigint, delay interval) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
declare
    v_table text := format('pgmq.%I', 'q_' || lower(queue_name collate "C"));
    v_count int;
begin
    if to_regclass(v_table) is null then
        return false;
    end if;
    execute format('update %s q set vt = $2 where q.msg_id = $1', v_table) using message_id, clock_timestamp() + delay;
    get diagnostics v_count = row_count;
    return v_count = 1;
end
$$;
