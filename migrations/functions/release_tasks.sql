-- Gives back tasks that a worker claimed and does not run: queued again, visible at once. The
-- attempt does not count: not against max_attempts, and not in the backoff. Items whose attempt is
-- not started by this worker any more are left alone; so are those whose message is gone, which
-- recovery ends. Returns how many were returned. `starts`: when each attempt was started, as its
-- claim said. Raises PF009 (arrays of different lengths).
-- Locks: runs, tasks, queue rows, wakeups. Callers: workers that stop.
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
    v_run_ids uuid[];
    v_slugs text[];
    v_indexes int[];
    v_queues text[];
    v_messages bigint[];
begin
    if cardinality(run_ids) is distinct from cardinality(step_slugs) or cardinality(run_ids) is distinct from cardinality(task_indexes)
        or cardinality(run_ids) is distinct from cardinality(attempts)
        or (starts is not null and cardinality(run_ids) is distinct from cardinality(starts))
    then
        raise exception 'release_tasks got arrays of different lengths' using errcode = 'PF009', hint = 'Pass one element of each array for each task.';
    end if;
    -- Whoever ends a run holds it and some of its tasks, and then reaches for the others: tasks are
    -- waited for under the run's lock only.
    perform from (select distinct u as run_id from unnest(release_tasks.run_ids) u order by u) i
    cross join lateral (select from pgflow.runs k where k.run_id = i.run_id limit 1 for no key update) locked;
    select array_agg(t.run_id), array_agg(t.step_slug), array_agg(t.task_index), array_agg(t.queue_name), array_agg(t.message_id)
    into v_run_ids, v_slugs, v_indexes, v_queues, v_messages
    from (
        select distinct i.*
        from unnest(
            release_tasks.run_ids, release_tasks.step_slugs, release_tasks.task_indexes, release_tasks.attempts, release_tasks.starts
        ) as i (run_id, step_slug, task_index, attempt, started_at)
        order by i.run_id, i.step_slug, i.task_index
    ) i
    -- Each row is looked up by itself, see _advance_runs; and only what seems to be this attempt is
    -- waited for. What it is like comes after the look-up, which must go by the key.
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
        and (i.started_at is null or t.started_at = i.started_at);
    return pgflow._requeue_tasks(v_run_ids, v_slugs, v_indexes, v_queues, v_messages, stalled => false);
end
$$;
