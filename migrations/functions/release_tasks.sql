-- Gives back tasks that a worker claimed and did not run: queued again, visible at once, the attempt not counted. Items whose attempt is not
-- started by this worker any more are left alone; so are those whose message is gone, which recovery ends. Returns how many were given back.
-- Raises PF009 (arrays of different lengths).
-- Locks: runs, tasks, queue rows. Callers: workers that stop.
create or replace function pgflow.release_tasks(worker_id uuid, run_ids uuid[], step_slugs text[], task_indexes int[], attempts int[]) returns int
language plpgsql
security definer
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
    if cardinality(run_ids) is distinct from cardinality(step_slugs) or cardinality(run_ids) is distinct from cardinality(task_indexes)
        or cardinality(run_ids) is distinct from cardinality(attempts)
    then
        raise exception 'release_tasks got arrays of different lengths' using errcode = 'PF009', hint = 'Pass one element of each array for each task.';
    end if;
    -- Whoever ends a run holds it and some of its tasks, and then reaches for the others: tasks are waited for under the run's lock only.
    perform from (
        select from pgflow.runs r where r.run_id = any (release_tasks.run_ids) order by r.run_id for no key update
    ) locked;
    for v_batch in
        select x.queue_name, array_agg(x.run_id) as run_ids, array_agg(x.step_slug) as slugs, array_agg(x.task_index) as indexes,
            array_agg(x.message_id) as messages
        from (
            select t.queue_name, t.message_id, t.run_id, t.step_slug, t.task_index
            from pgflow.step_tasks t
            where (t.run_id, t.step_slug, t.task_index, t.attempts_count) in (
                select i.run_id, i.step_slug, i.task_index, i.attempt
                from unnest(release_tasks.run_ids, release_tasks.step_slugs, release_tasks.task_indexes, release_tasks.attempts)
                    as i (run_id, step_slug, task_index, attempt)
            ) and t.status = 'started' and t.last_worker_id = release_tasks.worker_id
            order by t.run_id, t.step_slug, t.task_index
            for no key update
        ) x
        group by x.queue_name
        order by x.queue_name
    loop
        v_present := array(
            select m from pgflow.set_vt_batch(v_batch.queue_name, v_batch.messages, array_fill(0, array[cardinality(v_batch.messages)])) m
        );
        update pgflow.step_tasks t
        set status = 'queued', started_at = null, last_worker_id = null, attempts_count = t.attempts_count - 1
        from unnest(v_batch.run_ids, v_batch.slugs, v_batch.indexes) as i (run_id, step_slug, task_index)
        where t.run_id = i.run_id and t.step_slug = i.step_slug and t.task_index = i.task_index and t.message_id = any (v_present);
        get diagnostics v_count = row_count;
        if v_count <> cardinality(v_present) then
            raise exception 'giving back % tasks of queue "%" changed % rows', cardinality(v_present), v_batch.queue_name, v_count using errcode = 'PF012';
        end if;
        v_total := v_total + v_count;
        perform pgflow._wake_workers(array[v_batch.queue_name]);
    end loop;
    return v_total;
end
$$;
