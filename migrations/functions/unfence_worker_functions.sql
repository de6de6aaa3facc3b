-- Ends the fence of worker functions, all in one transaction: each is enabled or disabled again as
-- it was recorded, or as was decided since. One that is not fenced is left as it is. Returns the
-- functions by name. Raises PF001 (unknown functions; nothing is changed), PF009 (no function).
-- Locks: the functions' rows. Callers: operators, enable_worker_function.
create or replace function pgflow.unfence_worker_functions(function_names text[]) returns setof pgflow.worker_function_record
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    perform pgflow._assert_functions_known(unfence_worker_functions.function_names);
    update pgflow.worker_functions w
    set
        enabled = w.recorded_enabled, disabled_at = w.recorded_disabled_at, disabled_reason = w.recorded_disabled_reason,
        fenced_at = null, recorded_enabled = null, recorded_disabled_at = null, recorded_disabled_reason = null,
        updated_at = now()
    where w.function_name = any (unfence_worker_functions.function_names) and w.fenced_at is not null;
    return query
    select
        w.function_name, w.start_mode, w.enabled, w.disabled_at, w.disabled_reason, w.debounce, w.last_invoked_at, w.created_at, w.updated_at,
        w.fenced_at, w.recorded_enabled, w.recorded_disabled_at, w.recorded_disabled_reason, w.http_url
    from pgflow.worker_functions w
    where w.function_name = any (unfence_worker_functions.function_names) order by w.function_name;
end
$$;
