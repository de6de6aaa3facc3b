-- Reports that attempts of a worker still run although their timeouts have passed, because their
-- handlers block a thread. Recovery then leaves them alone for 30 seconds more. An attempt that is
-- not the current one, or not this worker's, changes nothing. Raises PF009 (arrays of different
-- lengths).
-- Locks: the rows of overdue_attempts, in order. Callers: workers, with their heartbeats.
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
    delete from pgflow.overdue_attempts o where o.reported_at < clock_timestamp() - interval '10 minutes';
    insert into pgflow.overdue_attempts as o (run_id, step_slug, task_index, reported_at)
    select i.run_id, i.step_slug, i.task_index, clock_timestamp()
    from (
        select distinct u.*
        from unnest(
            report_overdue_attempts.run_ids, report_overdue_attempts.step_slugs, report_overdue_attempts.task_indexes,
            report_overdue_attempts.attempts
        ) as u (run_id, step_slug, task_index, attempt)
        order by u.run_id, u.step_slug, u.task_index
    ) i
    -- The limit keeps this a look-up per attempt, however many tasks there are.
    cross join lateral (
        select x.status, x.attempts_count, x.last_worker_id
        from pgflow.step_tasks x
        where x.run_id = i.run_id and x.step_slug = i.step_slug and x.task_index = i.task_index
        limit 1
    ) k
    where k.status = 'started' and k.attempts_count = i.attempt and k.last_worker_id = report_overdue_attempts.worker_id
    on conflict (run_id, step_slug, task_index) do update set reported_at = excluded.reported_at;
end
$$;
