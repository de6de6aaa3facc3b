-- A worker says that it was asked to stop, and finishes what it runs: it takes nothing more, and
-- counts for no coverage, like one that operators asked to stop. An unknown or stopped one changes
-- nothing, and neither does one that was told before.
-- Locks: the worker's row. Callers: workers.
create or replace function pgflow.mark_worker_draining(worker_id uuid) returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    update pgflow.workers w
    set deprecated_at = clock_timestamp(), deprecated_reason = 'its process was asked to stop'
    where w.worker_id = mark_worker_draining.worker_id and w.stopped_at is null and w.deprecated_at is null;
end
$$;
