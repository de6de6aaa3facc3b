-- Lists the messages, of one queue or of all queues of flows, that no worker can take: one of them
-- stops each worker that reads it. `has_task` says whether a task has the message, so that it must
-- not simply be archived. The classes are those of claim_tasks, for the worker that the queue is
-- for.
-- Locks: none. Callers: operators, archive_unsupported_messages.
create or replace function pgflow.unsupported_messages(in_queue text default null) returns table (
    queue_name text, message_id bigint, enqueued_at timestamptz, visible_at timestamptz, read_count int, has_task boolean, reason text, body jsonb
)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    v_route record;
begin
    for v_route in
        select distinct on (q.queue_name) q.queue_name, q.flow_slug, q.step_slug
        from pgflow.flow_queues q
        where unsupported_messages.in_queue is null or q.queue_name = lower(unsupported_messages.in_queue collate "C")
        order by q.queue_name, q.step_index
    loop
        -- Dropped by somebody.
        continue when to_regclass(format('pgmq.%I', 'q_' || v_route.queue_name)) is null;
        return query execute format(
            $query$
                select $1, m.msg_id, m.enqueued_at, m.vt, m.read_ct, m.task_flow is not null, m.reason, m.message
                from (
                    select
                        q.msg_id, q.enqueued_at, q.vt, q.read_ct, q.message, t.flow_slug as task_flow,
                        case
                            when t.run_id is null then 'no task has this message'
                            when t.flow_slug <> $2 then format('its task belongs to flow "%%s", the queue to flow "%%s"', t.flow_slug, $2)
                            when t.step_slug <> $3 then format('its task belongs to step "%%s", the queue to step "%%s"', t.step_slug, $3)
                            when s.queue_name <> $1 then format('step "%%s" is routed to queue "%%s"', t.step_slug, s.queue_name)
                            when q.message ->> 'flow_slug' <> t.flow_slug or q.message ->> 'run_id' <> t.run_id::text
                                or q.message ->> 'step_slug' <> t.step_slug or q.message ->> 'task_index' <> t.task_index::text
                                then 'its body names another task than the one that it was sent for'
                        end as reason
                    from pgmq.%I q
                    left join lateral (
                        select x.* from pgflow.step_tasks x where x.queue_name = $1 and x.message_id = q.msg_id limit 1
                    ) t on true
                    left join pgflow.steps s on s.flow_slug = t.flow_slug and s.step_slug = t.step_slug
                ) m
                where m.reason is not null
                order by m.msg_id
            $query$,
            'q_' || v_route.queue_name
        ) using v_route.queue_name, v_route.flow_slug, v_route.step_slug;
    end loop;
end
$$;
