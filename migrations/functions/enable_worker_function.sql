-- Lets a worker function start again, once the reason why it was disabled is dealt with. One that
-- is enabled is left as it is. Of a fenced one only the fence ends: what was recorded is restored,
-- and that may be disabled, for a reason of its own. Raises PF001 (unknown function).
-- Locks: the function's row. Callers: operators.
create or replace function pgflow.enable_worker_function(function_name text) returns pgflow.worker_function_record
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    v_function pgflow.worker_function_record;
    v_is_fenced boolean;
begin
    perform pgflow._assert_functions_known(array[enable_worker_function.function_name]);
    select w.fenced_at is not null into strict v_is_fenced from pgflow.worker_functions w where w.function_name = enable_worker_function.function_name;
    if v_is_fenced then
        perform pgflow.unfence_worker_functions(array[enable_worker_function.function_name]);
    else
        update pgflow.worker_functions w
        set enabled = true, disabled_at = null, disabled_reason = null, updated_at = now()
        where w.function_name = enable_worker_function.function_name and not w.enabled;
    end if;
    select
        w.function_name, w.start_mode, w.enabled, w.disabled_at, w.disabled_reason, w.debounce, w.last_invoked_at, w.created_at, w.updated_at,
        w.fenced_at, w.recorded_enabled, w.recorded_disabled_at, w.recorded_disabled_reason, w.http_url
    into strict v_function
    from pgflow.worker_functions w
    where w.function_name = enable_worker_function.function_name;
    return v_function;
end
$$;
