-- Tells workers to stop, those of these functions or of this flow, except those that were told
-- before. They hear of it with their next heartbeat, within 5 seconds, finish what they run, and
-- get nothing from now on. Returns their ids. Raises PF011 unless each statement sees what was
-- committed before it: else a worker that registered while this waited would continue.
-- Locks: the workers' rows, in the order of their ids. Callers: fence_worker_functions,
-- deprecate_workers, _drain_flow, delete_flow_and_data.
create or replace function pgflow._deprecate_workers(function_names text[], flow_slug text, reason text) returns setof uuid
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
        raise exception 'workers can not be told to stop in a transaction of isolation level %', current_setting('transaction_isolation') using
            errcode = 'PF011',
            hint = 'Begin it with: begin transaction isolation level read committed.';
    end if;
    return query
    update pgflow.workers w
    set deprecated_at = clock_timestamp(), deprecated_reason = _deprecate_workers.reason
    from (
        select x.worker_id
        from pgflow.workers x
        where (x.function_name = any (_deprecate_workers.function_names) or x.flow_slug = _deprecate_workers.flow_slug)
            and x.stopped_at is null and x.deprecated_at is null
        order by x.worker_id
        for no key update
    ) told
    where w.worker_id = told.worker_id
    returning w.worker_id;
end
$$;
