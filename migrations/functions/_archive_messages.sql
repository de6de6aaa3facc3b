-- Archives messages, grouped by queue. Returns how many were there to archive: one that is gone
-- already is no error, and neither is a queue that somebody dropped. The task rows say what
-- happened to the work, and no run may hang for what was done to its messages.
-- Locks: queue rows, blocking. Task rows come first. Callers: complete_tasks, fail_task,
-- claim_tasks, _exhaust_task, _fail_run, _fail_end_step, _skip_steps.
create or replace function pgflow._archive_messages(queue_names text[], message_ids bigint[]) returns int
language plpgsql
set search_path = pg_catalog, pg_temp
-- PGMQ's functions do not compile without it.
set standard_conforming_strings = on
as $$
#variable_conflict use_column
declare
    v_group record;
    v_archived int;
    v_total int := 0;
begin
    for v_group in
        select m.queue_name, array_agg(m.message_id order by m.message_id) as ids
        from unnest(_archive_messages.queue_names, _archive_messages.message_ids) as m (queue_name, message_id)
        where m.message_id is not null
        group by m.queue_name
        order by m.queue_name
    loop
        begin
            select count(*) into v_archived from pgmq.archive(v_group.queue_name, v_group.ids);
        exception
            when unique_violation then
                -- Copied back out of the archive manually, which keeps the copy that it has. A
                -- look-up for each message, however long the archive.
                execute format(
                    'delete from pgmq.%I q where q.msg_id = any ($1) and q.msg_id = (select a.msg_id from pgmq.%I a where a.msg_id = q.msg_id)',
                    'q_' || v_group.queue_name, 'a_' || v_group.queue_name
                ) using v_group.ids;
                get diagnostics v_archived = row_count;
                select v_archived + count(*) into v_archived from pgmq.archive(v_group.queue_name, v_group.ids);
            when undefined_table then
                if to_regclass(format('pgmq.%I', 'q_' || v_group.queue_name)) is not null then
                    raise;
                end if;
                v_archived := 0;
        end;
        v_total := v_total + v_archived;
    end loop;
    return v_total;
end
$$;
