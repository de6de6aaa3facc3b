-- Marks a worker as stopped. What it did not return is due for recovery at once. An unknown or
-- stopped one changes nothing.
-- Locks: the worker's row, its claims. Callers: workers.
create or replace function pgflow.mark_worker_stopped(worker_id uuid) returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    update pgflow.workers w
    set stopped_at = clock_timestamp()
    where w.worker_id = mark_worker_stopped.worker_id and w.stopped_at is null;
    if found then
        perform pgflow._look_at_claims(array[mark_worker_stopped.worker_id]);
    end if;
end
$$;
