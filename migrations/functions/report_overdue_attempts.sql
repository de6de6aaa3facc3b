-- Reports that attempts of a worker still run although their timeouts have passed, because their handlers
-- block a thread. Recovery then leaves them alone for 30 seconds more. An attempt that is not the current
-- one, or not this worker's, changes nothing.
-- Raises PF009 (arrays of different lengths).
-- Locks: tasks, skipping what somebody else holds: the next report follows. Callers: workers, with their
-- heartbeats.
create or replace function pgflow.report_overdue_attempts(
    worker_id uuid, run_ids uuid[], step_slugs text[], task_indexes int[], attempts int[]
) returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
#variable_conflict use_column
begin
    if cardinality(run_ids) is distinct from cardinality(step_slugs) or cardinality(run_ids) is distinct from cardinality(task_indexes)
        or cardinality(run_ids) is distinct from cardinality(attempts)
    then
        raise exception 'report_overdue_attempts got arrays of different lengths' using
            errcode = 'PF009',
            hint = 'Pass one element of each array for each attempt.';
    end if;
    update pgflow.step_tasks t
    set still_running_at = clock_timestamp()
    from (
        select k.place
        from unnest(
            report_overdue_attempts.run_ids, report_overdue_attempts.step_slugs, report_overdue_attempts.task_indexes,
            report_overdue_attempts.attempts
        ) as i (run_id, step_slug, task_index, attempt)
        -- The limit keeps this a look-up per attempt, however many tasks there are.
        cross join lateral (
            select x.ctid as place, x.status, x.attempts_count, x.last_worker_id
            from pgflow.step_tasks x
            where x.run_id = i.run_id and x.step_slug = i.step_slug and x.task_index = i.task_index
            limit 1
            for no key update skip locked
        ) k
        where k.status = 'started' and k.attempts_count = i.attempt and k.last_worker_id = report_overdue_attempts.worker_id
    ) k
    where t.ctid = k.place;
end
$$;
