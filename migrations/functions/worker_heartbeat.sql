-- Records a worker's heartbeat, as worker_heartbeats does for many. Returns whether it is
-- deprecated: then it should finish what it runs and stop. Raises PF007 (unknown or stopped
-- worker).
-- Locks: the worker's row. Callers: workers, every 5 s.
create or replace function pgflow.worker_heartbeat(worker_id uuid) returns boolean
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    v_deprecated boolean;
begin
    select h.is_deprecated into v_deprecated from pgflow.worker_heartbeats(array[worker_heartbeat.worker_id]) h;
    if not found then
        raise exception 'worker % is not registered, or has stopped', worker_heartbeat.worker_id using
            errcode = 'PF007',
            hint = 'Start a new worker: it registers under a new id.';
    end if;
    return v_deprecated;
end
$$;
