-- Puts started tasks back into their queues, visible at once, and wakes the workers there:
-- `stalled` ones count a requeue, and their attempt; that of the others does not count. Those whose
-- message is gone stay as they are. Returns how many were put back. The arrays run in parallel;
-- each task is there once.
-- Locks: queue rows that the caller's task locks stand for, wakeups. Callers: release_tasks,
-- recover_tasks.
create or replace function pgflow._requeue_tasks(
    run_ids uuid[], step_slugs text[], task_indexes int[], queue_names text[], message_ids bigint[], stalled boolean
) returns int
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
#variable_conflict use_column
declare
    v_batch record;
    v_present bigint[];
    v_count int;
    v_total int := 0;
begin
    for v_batch in
        select x.queue_name, array_agg(x.run_id) as run_ids, array_agg(x.step_slug) as slugs, array_agg(x.task_index) as indexes,
            array_agg(x.message_id) as messages
        from unnest(_requeue_tasks.run_ids, _requeue_tasks.step_slugs, _requeue_tasks.task_indexes, _requeue_tasks.queue_names, _requeue_tasks.message_ids)
            as x (run_id, step_slug, task_index, queue_name, message_id)
        group by x.queue_name
        order by x.queue_name
    loop
        v_present := array(
            select m from pgflow.set_vt_batch(v_batch.queue_name, v_batch.messages, array_fill(0, array[cardinality(v_batch.messages)])) m
        );
        update pgflow.step_tasks t
        set status = 'queued', started_at = null, last_worker_id = null,
            uncounted_attempts = t.uncounted_attempts + case when stalled then 0 else 1 end,
            postponed_count = case when stalled then 0 else t.postponed_count end,
            postponed_since = case when stalled then null else t.postponed_since end,
            requeued_count = t.requeued_count + case when stalled then 1 else 0 end,
            last_requeued_at = case when stalled then clock_timestamp() else t.last_requeued_at end
        from unnest(v_batch.run_ids, v_batch.slugs, v_batch.indexes) as i (run_id, step_slug, task_index)
        cross join lateral (
            select k.ctid
            from pgflow.step_tasks k
            where k.run_id = i.run_id and k.step_slug = i.step_slug and k.task_index = i.task_index and k.message_id = any (v_present)
            limit 1
        ) k
        where t.ctid = k.ctid;
        get diagnostics v_count = row_count;
        if v_count <> cardinality(v_present) then
            raise exception 'putting % tasks back into queue "%" changed % rows', cardinality(v_present), v_batch.queue_name, v_count using errcode = 'PF012';
        end if;
        v_total := v_total + v_count;
        perform pgflow._wake_workers(array[v_batch.queue_name]);
    end loop;
    return v_total;
end
$$;
