-- Hides each message for its own number of seconds from now on (0: visible at once). Returns the messages that are in the queue.
-- Raises PF009 when the arrays differ in length.
-- Locks: queue rows, blocking. Task rows come first. Callers: fail_task, release_tasks, requeue_stalled_tasks, workers.
create or replace function pgflow.set_vt_batch(queue_name text, msg_ids bigint[], vt_offsets int[]) returns setof bigint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    if cardinality(msg_ids) is distinct from cardinality(vt_offsets) then
        raise exception 'set_vt_batch got % message ids and % offsets; it needs one offset for each message', cardinality(msg_ids), cardinality(vt_offsets) using
            errcode = 'PF009';
    end if;
    return query execute format(
        'update pgmq.%I q set vt = clock_timestamp() + make_interval(secs => m.secs)
         from unnest($1, $2) as m (msg_id, secs) where q.msg_id = m.msg_id returning q.msg_id',
        'q_' || lower(set_vt_batch.queue_name collate "C")
    ) using msg_ids, vt_offsets;
end
$$;
