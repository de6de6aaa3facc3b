-- Records the host and the process of a worker, as its machine calls them, so that operators find
-- it. NULL where one is not known.
-- Raises PF007 (unknown worker), PF009 (no worker).
-- Locks: the worker's row. Callers: workers at startup, after register_worker.
create or replace function pgflow.set_worker_process(worker_id uuid, host text, pid bigint) returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    if set_worker_process.worker_id is null then
        raise exception 'set_worker_process got no worker' using
            errcode = 'PF009',
            hint = 'Pass the id of a registered worker.';
    end if;
    update pgflow.workers w
    set host = left(set_worker_process.host, 255), pid = set_worker_process.pid
    where w.worker_id = set_worker_process.worker_id;
    if not found then
        raise exception 'worker % is not registered', set_worker_process.worker_id using
            errcode = 'PF007',
            hint = 'Call pgflow.register_worker first.';
    end if;
end
$$;
