-- Archives messages, grouped by queue. Returns how many were there to archive: one that is gone already is no error, the task rows
-- say what happened to the work.
-- Locks: queue rows, blocking. Task rows come first. Callers: complete_tasks, fail_task, claim_tasks, _fail_run, _skip_steps.
create or replace function pgflow._archive_messages(queue_names text[], message_ids bigint[]) returns int
language plpgsql
set search_path = pg_catalog, pg_temp
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
        select count(*) into v_archived from pgmq.archive(v_group.queue_name, v_group.ids);
        v_total := v_total + v_archived;
    end loop;
    return v_total;
end
$$;
