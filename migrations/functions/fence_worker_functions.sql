-- Takes worker functions out of service for a deployment, all in one transaction: records whether each is enabled, disables it, and tells its live
-- workers to stop. unfence_worker_functions restores what was recorded. One that is fenced already keeps what it has recorded; workers that came
-- since are told to stop. Returns the functions by name.
-- Raises PF001 (unknown functions; nothing is changed), PF009 (no function), PF011 (isolation).
-- Locks: the functions' rows, then their workers'. Callers: operators.
create or replace function pgflow.fence_worker_functions(function_names text[], reason text default null) returns setof pgflow.worker_functions
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    v_reason text := 'fenced' || coalesce(': ' || fence_worker_functions.reason, '');
begin
    perform pgflow._assert_functions_known(fence_worker_functions.function_names);
    update pgflow.worker_functions w
    set
        enabled = false, disabled_at = clock_timestamp(), disabled_reason = v_reason, fenced_at = clock_timestamp(),
        recorded_enabled = w.enabled, recorded_disabled_at = w.disabled_at, recorded_disabled_reason = w.disabled_reason,
        updated_at = now()
    where w.function_name = any (fence_worker_functions.function_names) and w.fenced_at is null;
    perform pgflow._deprecate_workers(fence_worker_functions.function_names, null, v_reason);
    return query
    select w.* from pgflow.worker_functions w where w.function_name = any (fence_worker_functions.function_names) order by w.function_name;
end
$$;
