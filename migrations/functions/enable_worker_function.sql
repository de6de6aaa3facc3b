-- Lets a worker function that was disabled start again, once the reason is dealt with. One that is enabled is left as it is.
-- Raises PF001 (unknown function).
-- Locks: the function's row. Callers: operators.
create or replace function pgflow.enable_worker_function(function_name text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    update pgflow.worker_functions w
    set enabled = true, disabled_at = null, disabled_reason = null, updated_at = now()
    where w.function_name = enable_worker_function.function_name and not w.enabled;
    if not found and not exists (select from pgflow.worker_functions w where w.function_name = enable_worker_function.function_name) then
        raise exception 'worker function "%" is not known', enable_worker_function.function_name using
            errcode = 'PF001',
            hint = 'See pgflow.worker_functions; a plain flow''s function is named like the flow.';
    end if;
end
$$;
