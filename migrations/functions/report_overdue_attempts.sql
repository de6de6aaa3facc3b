-- Says that these attempts of a worker go on although their time is over: their handlers block.
-- Raises PF009 (arrays of different lengths).
-- Locks: none. Callers: workers, with their heartbeats.
create or replace function pgflow.report_overdue_attempts(
    worker_id uuid, run_ids uuid[], step_slugs text[], task_indexes int[], attempts int[]
) returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if cardinality(run_ids) is distinct from cardinality(step_slugs) or cardinality(run_ids) is distinct from cardinality(task_indexes)
        or cardinality(run_ids) is distinct from cardinality(attempts)
    then
        raise exception 'report_overdue_attempts got arrays of different lengths' using
            errcode = 'PF009',
            hint = 'Pass one element of each array for each attempt.';
    end if;
end
$$;
