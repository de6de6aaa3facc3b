-- Takes a worker function out of service: none of its workers starts any more. Those that run go
-- on; see deprecate_workers. One that is disabled already keeps its time and reason. Of a fenced
-- one, what the fence will restore becomes disabled. Raises PF001 (unknown function).
-- Locks: the function's row. Callers: operators.
create or replace function pgflow.disable_worker_function(function_name text, reason text default null) returns pgflow.worker_function_record
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    v_function pgflow.worker_function_record;
begin
    perform pgflow._assert_functions_known(array[disable_worker_function.function_name]);
    perform pgflow._disable_function(disable_worker_function.function_name, disable_worker_function.reason);
    select
        w.function_name, w.start_mode, w.enabled, w.disabled_at, w.disabled_reason, w.debounce, w.last_invoked_at, w.created_at, w.updated_at,
        w.fenced_at, w.recorded_enabled, w.recorded_disabled_at, w.recorded_disabled_reason, w.http_url
    into strict v_function
    from pgflow.worker_functions w
    where w.function_name = disable_worker_function.function_name;
    return v_function;
end
$$;
