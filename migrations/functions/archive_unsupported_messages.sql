-- Archives the messages that no task has from the queues that a worker function serves: what
-- somebody sent there manually. Nothing is lost: the archive has them. A message that a task has
-- stays, with its reason: without it that task would never run. Returns all of them. The function
-- stays as it is, see enable_worker_function. Raises PF001 (unknown function), PF012 (a message
-- that was locked is gone).
-- Locks: the function's row, then queue rows, which no task stands for. A claim that holds such a
-- row never waits for the function.
-- Callers: operators.
create or replace function pgflow.archive_unsupported_messages(function_name text)
returns table (queue_name text, message_id bigint, reason text, archived boolean)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    v_queue text;
    v_ids bigint[];
begin
    perform pgflow._assert_functions_known(array[archive_unsupported_messages.function_name]);
    for v_queue in
        select q.queue_name
        from pgflow.flow_queues q
        where q.queue_name = archive_unsupported_messages.function_name or exists (
            select from pgflow.workers w
            where w.function_name = archive_unsupported_messages.function_name and w.flow_slug = q.flow_slug and w.queue_name = q.queue_name
        )
        group by q.queue_name
        order by q.queue_name
    loop
        return query
        select m.queue_name, m.message_id, m.reason, false from pgflow.unsupported_messages(v_queue) m where m.has_task;
        -- A task is stored with its message, so what has none now will never have one.
        v_ids := array(select m.message_id from pgflow.unsupported_messages(v_queue) m where not m.has_task);
        continue when v_ids = '{}';
        execute format(
            'select array_agg(l.msg_id) from (select q.msg_id from pgmq.%I q where q.msg_id = any ($1) order by q.msg_id for update) l',
            'q_' || v_queue
        ) into v_ids using v_ids;
        -- Archived by somebody else while this waited.
        continue when v_ids is null;
        if pgflow._archive_messages(array_fill(v_queue, array[cardinality(v_ids)]), v_ids) <> cardinality(v_ids) then
            raise exception 'messages of queue "%" that were locked are gone', v_queue using errcode = 'PF012';
        end if;
        return query select v_queue, i.id, 'no task has this message', true from unnest(v_ids) i (id) order by i.id;
    end loop;
end
$$;
