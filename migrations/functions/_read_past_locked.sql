-- Reads further messages for a claim, instead of those whose tasks another session holds, as one
-- that ends a large run does, or many that each end a task: locks as many further tasks and their
-- messages as are missing from `max_tasks`, and returns these messages. `message_ids` and
-- `classes`: what the claim has read. Looks at the next 1,000 messages; when the claim still has
-- nothing, at 100,000 more, except those of the runs that it met.
-- Locks: tasks, then queue rows, waiting for neither. Callers: claim_tasks.
create or replace function pgflow._read_past_locked(
    queue_name text, visible_at timestamptz, message_ids bigint[], classes text[], max_tasks int
) returns table (message_id bigint, read_count int, enqueued_at timestamptz, body jsonb)
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
#variable_conflict use_column
declare
    v_queue text := _read_past_locked.queue_name;
    v_locked bigint := (select count(*) from unnest(classes) c where c = 'locked');
    v_missing bigint := max_tasks - cardinality(message_ids) + v_locked;
    v_sql text;
    v_run_ids text[];
    v_count int;
begin
    if cardinality(message_ids) < max_tasks then
        -- There are no others.
        return;
    end if;
    -- The order is that of the index, so what was looked at comes first again. A message without a
    -- task is the claim's to judge.
    v_sql := format(
        'select q.msg_id, q.read_ct, q.enqueued_at, q.message
         from (
             select c.msg_id, c.message
             from pgmq.%1$I c
             where c.vt <= $1 and %%s
             order by c.vt
             limit $3
         ) c
         left join lateral (
             select x.run_id
             from pgflow.step_tasks x
             where x.queue_name = $5 and x.message_id = c.msg_id
             limit 1
             for no key update skip locked
         ) l on true
         left join lateral (
             select x.run_id from pgflow.step_tasks x where l.run_id is null and x.queue_name = $5 and x.message_id = c.msg_id limit 1
         ) e on true
         cross join lateral (
             select x.* from pgmq.%1$I x where e.run_id is null and x.msg_id = c.msg_id and x.vt <= $1 limit 1 for update skip locked
         ) q
         limit $4',
        'q_' || v_queue
    );
    return query execute format(v_sql, 'c.msg_id <> all ($2)') using visible_at, message_ids, 1000, v_missing, v_queue;
    get diagnostics v_count = row_count;
    if v_count > 0 or v_locked < cardinality(message_ids) then
        return;
    end if;
    -- The bodies tell the run without a look-up; one that lies is read by a later claim.
    execute format(
        'select array_agg(distinct m.message ->> ''run_id'')
         from (select c.message from pgmq.%I c where c.vt <= $1 order by c.vt limit $2) m',
        'q_' || v_queue
    ) into v_run_ids using visible_at, cardinality(message_ids) + 1000;
    return query execute format(v_sql, '(c.message ->> ''run_id'') <> all ($2)') using visible_at, v_run_ids, 100000, v_missing, v_queue;
end
$$;
