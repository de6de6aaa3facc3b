-- Gives back tasks that a worker claimed and did not run: queued again, visible at once, the attempt not counted. Items that are no longer
-- started by this worker are left alone. Returns how many were given back.
-- Raises PF009 (arrays of different lengths).
-- Locks: runs, tasks, queue rows. Callers: workers that stop.
create or replace function pgflow.release_tasks(worker_id uuid, run_ids uuid[], step_slugs text[], task_indexes int[]) returns int
language plpgsql
set search_path = ''
set enable_seqscan = off
as $$
#variable_conflict use_column
declare
    v_batch record;
    v_count int;
    v_total int := 0;
begin
    if cardinality(run_ids) is distinct from cardinality(step_slugs) or cardinality(run_ids) is distinct from cardinality(task_indexes) then
        raise exception 'release_tasks got arrays of different lengths' using errcode = 'PF009';
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
            where (t.run_id, t.step_slug, t.task_index) in (
                select i.run_id, i.step_slug, i.task_index
                from unnest(release_tasks.run_ids, release_tasks.step_slugs, release_tasks.task_indexes) as i (run_id, step_slug, task_index)
            ) and t.status = 'started' and t.last_worker_id = release_tasks.worker_id
            order by t.run_id, t.step_slug, t.task_index
            for no key update
        ) x
        group by x.queue_name
        order by x.queue_name
    loop
        update pgflow.step_tasks t
        set status = 'queued', started_at = null, last_worker_id = null, attempts_count = t.attempts_count - 1
        from unnest(v_batch.run_ids, v_batch.slugs, v_batch.indexes) as i (run_id, step_slug, task_index)
        where t.run_id = i.run_id and t.step_slug = i.step_slug and t.task_index = i.task_index;
        get diagnostics v_count = row_count;
        if v_count <> (select count(*) from pgflow.set_vt_batch(v_batch.queue_name, v_batch.messages, array_fill(0, array[cardinality(v_batch.messages)]))) then
            raise exception 'queue "%" lacks messages of tasks that a worker gives back', v_batch.queue_name using errcode = 'PF012';
        end if;
        v_total := v_total + v_count;
    end loop;
    return v_total;
end
$$;
