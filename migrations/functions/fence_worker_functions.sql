-- Takes worker functions out of service for a deployment, all in one transaction: records whether
-- each is enabled, disables it, and tells its live workers to stop. unfence_worker_functions
-- restores what was recorded. One that is fenced already keeps what it has recorded; workers that
-- came since are asked to stop. Returns the functions by name. Raises PF001 (unknown functions;
-- nothing is changed), PF009 (no function), PF011 (isolation).
-- Locks: the functions' rows, then their workers'. Callers: operators.
create or replace function pgflow.fence_worker_functions(function_names text[], reason text default null) returns setof pgflow.worker_function_record
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    v_reason text := 'fenced' || coalesce(': ' || fence_worker_functions.reason, '');
    v_now timestamptz;
begin
    perform pgflow._assert_functions_known(fence_worker_functions.function_names);
    v_now := clock_timestamp();
    update pgflow.worker_functions w
    set
        enabled = false, disabled_at = v_now, disabled_reason = v_reason, fenced_at = v_now,
        recorded_enabled = w.enabled, recorded_disabled_at = w.disabled_at, recorded_disabled_reason = w.disabled_reason,
        updated_at = now()
    where w.function_name = any (fence_worker_functions.function_names) and w.fenced_at is null;
    perform pgflow._deprecate_workers(fence_worker_functions.function_names, null, v_reason);
    return query
    select
        w.function_name, w.start_mode, w.enabled, w.disabled_at, w.disabled_reason, w.debounce, w.last_invoked_at, w.created_at, w.updated_at,
        w.fenced_at, w.recorded_enabled, w.recorded_disabled_at, w.recorded_disabled_reason, w.http_url
    from pgflow.worker_functions w
    where w.function_name = any (fence_worker_functions.function_names) order by w.function_name;
end
$$;
