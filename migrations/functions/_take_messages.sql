-- Hides each message until a moment of its own, and counts the read as pgmq.read does unless that
-- has counted it (`counted`). Returns how many are in the queue.
-- Locks: queue rows that the caller's task locks stand for. Callers: _start_claimed, claim_tasks.
create or replace function pgflow._take_messages(queue_name text, message_ids bigint[], visible_at timestamptz[], counted boolean) returns int
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    v_ids bigint[];
    v_visible_at timestamptz[];
    v_count int;
begin
    select array_agg(m.id order by m.id), array_agg(m.vt order by m.id) into v_ids, v_visible_at
    from unnest(message_ids, visible_at) as m (id, vt);
    -- No join: with statistics from when the queue was empty, as queues mostly are, it reads the
    -- whole backlog. width_bucket finds an id's place in the sorted array.
    execute format(
        'update pgmq.%I q set vt = $2[width_bucket(q.msg_id, $1)], read_ct = q.read_ct + $3
         where q.msg_id = any ($1)',
        'q_' || lower(queue_name collate "C")
    ) using v_ids, v_visible_at, case when counted then 0 else 1 end;
    get diagnostics v_count = row_count;
    return v_count;
end
$$;
