-- Hides each message for its own number of seconds from now on (0: visible at once). Returns the
-- messages that are in the queue: none when somebody dropped the queue of a flow. A message id that
-- is NULL is none. Raises PF009 for a queue that there never was, arrays of different lengths, and
-- an offset that is NULL.
-- Locks: queue rows, blocking. Task rows come first. Callers: fail_task, _requeue_tasks, workers.
create or replace function pgflow.set_vt_batch(queue_name text, msg_ids bigint[], vt_offsets int[]) returns setof bigint
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
#variable_conflict use_column
declare
    v_ids bigint[];
    v_offsets int[];
begin
    if cardinality(msg_ids) is distinct from cardinality(vt_offsets) then
        raise exception 'set_vt_batch got % message ids and % offsets; it needs one offset for each message', cardinality(msg_ids), cardinality(vt_offsets) using
            errcode = 'PF009',
            hint = 'Pass one element of each array for each message.';
    end if;
    if exists (select from unnest(msg_ids, vt_offsets) as m (id, secs) where m.id is not null and m.secs is null) then
        raise exception 'set_vt_batch got an offset that is null' using
            errcode = 'PF009',
            hint = 'An offset is a number of seconds from now on; 0 makes the message visible.';
    end if;
    if to_regclass(format('pgmq.%I', 'q_' || lower(coalesce(set_vt_batch.queue_name, '') collate "C"))) is null then
        if not exists (
            select from pgflow.wakeups k where k.queue_name = lower(set_vt_batch.queue_name collate "C")
            union all
            select from pgflow.flow_queues k where k.queue_name = lower(set_vt_batch.queue_name collate "C")
        ) then
            raise exception 'there is no queue "%"', coalesce(set_vt_batch.queue_name, 'NULL') using
                errcode = 'PF009',
                hint = 'The queues of flows are in pgflow.flow_queues.';
        end if;
        return;
    end if;
    select array_agg(m.id order by m.id), array_agg(m.secs order by m.id) into v_ids, v_offsets
    from unnest(msg_ids, vt_offsets) as m (id, secs)
    where m.id is not null;
    -- No join: see _take_messages. A microsecond apart, in the order of their ids: claims take
    -- first what has been visible longest.
    return query execute format(
        'update pgmq.%I q
         set vt = $3 + make_interval(secs => $2[width_bucket(q.msg_id, $1)]) - (cardinality($1) - width_bucket(q.msg_id, $1)) * interval ''1 microsecond''
         where q.msg_id = any ($1) returning q.msg_id',
        'q_' || lower(set_vt_batch.queue_name collate "C")
    ) using v_ids, v_offsets, clock_timestamp();
end
$$;
