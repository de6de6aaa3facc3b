-- Gives back tasks that a worker claimed and did not run: queued again, visible at once, the attempt not counted. Items whose attempt is not
-- started by this worker any more are left alone; so are those whose message is gone, which recovery ends. Returns how many were given back.
-- `starts`: when each attempt was started, as its claim said. With it a call may be made again: an attempt that is given back isn't counted, so the next
-- one of the same worker has the same number, and only its start tells it from the one before.
-- Raises PF009 (arrays of different lengths).
-- Locks: runs, tasks, queue rows. Callers: workers that stop.
create or replace function pgflow.release_tasks(
    worker_id uuid, run_ids uuid[], step_slugs text[], task_indexes int[], attempts int[], starts timestamptz[] default null
) returns int
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
        or (starts is not null and cardinality(run_ids) is distinct from cardinality(starts))
    then
        raise exception 'release_tasks got arrays of different lengths' using errcode = 'PF009', hint = 'Pass one element of each array for each task.';
    end if;
    -- Whoever ends a run holds it and some of its tasks, and then reaches for the others: tasks are waited for under the run's lock only.
    perform from (select distinct u as run_id from unnest(release_tasks.run_ids) u order by u) i
    cross join lateral (select from pgflow.runs k where k.run_id = i.run_id limit 1 for no key update) locked;
    for v_batch in
        select x.queue_name, array_agg(x.run_id) as run_ids, array_agg(x.step_slug) as slugs, array_agg(x.task_index) as indexes,
            array_agg(x.message_id) as messages
        from (
            select t.*
            from (
                select distinct i.*
                from unnest(
                    release_tasks.run_ids, release_tasks.step_slugs, release_tasks.task_indexes, release_tasks.attempts, release_tasks.starts
                ) as i (run_id, step_slug, task_index, attempt, started_at)
                order by i.run_id, i.step_slug, i.task_index
            ) i
            -- Each row is looked up by itself, see _advance_runs; and only what seems to be this attempt is waited for. What it is like comes after the
            -- look-up, which must go by the key.
            cross join lateral (
                select k.status = 'started' and k.attempts_count = i.attempt and k.last_worker_id = release_tasks.worker_id
                    and (i.started_at is null or k.started_at = i.started_at) as is_meant
                from pgflow.step_tasks k
                where k.run_id = i.run_id and k.step_slug = i.step_slug and k.task_index = i.task_index
                limit 1
            ) seen
            cross join lateral (
                select k.*
                from pgflow.step_tasks k
                where seen.is_meant and k.run_id = i.run_id and k.step_slug = i.step_slug and k.task_index = i.task_index
                limit 1
                for no key update
            ) t
            where t.status = 'started' and t.attempts_count = i.attempt and t.last_worker_id = release_tasks.worker_id
                and (i.started_at is null or t.started_at = i.started_at)
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
        cross join lateral (
            select k.ctid
            from pgflow.step_tasks k
            where k.run_id = i.run_id and k.step_slug = i.step_slug and k.task_index = i.task_index and k.message_id = any (v_present)
            limit 1
        ) k
        where t.ctid = k.ctid;
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
