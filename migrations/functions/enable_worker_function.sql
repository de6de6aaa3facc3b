-- Lets a worker function start again, once the reason why it was disabled is dealt with. One that is enabled is left as it is. Of a fenced one
-- only the fence ends: what was recorded is restored, and that may be disabled, for a reason of its own.
-- Raises PF001 (unknown function).
-- Locks: the function's row. Callers: operators.
create or replace function pgflow.enable_worker_function(function_name text) returns pgflow.worker_functions
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    v_function pgflow.worker_functions;
begin
    perform pgflow._assert_functions_known(array[enable_worker_function.function_name]);
    select w.* into strict v_function from pgflow.worker_functions w where w.function_name = enable_worker_function.function_name;
    if v_function.fenced_at is not null then
        return (select w from pgflow.unfence_worker_functions(array[enable_worker_function.function_name]) w);
    end if;
    update pgflow.worker_functions w
    set enabled = true, disabled_at = null, disabled_reason = null, updated_at = now()
    where w.function_name = enable_worker_function.function_name and not w.enabled
    returning w.* into v_function;
    if not found then
        select w.* into strict v_function from pgflow.worker_functions w where w.function_name = enable_worker_function.function_name;
    end if;
    return v_function;
end
$$;
