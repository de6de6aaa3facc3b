-- Takes a worker function out of service. What is disabled already keeps its time and reason; of a
-- fenced one, what the fence will restore becomes disabled.
-- Locks: the function's row. Callers: claim_tasks, disable_worker_function.
create or replace function pgflow._disable_function(function_name text, reason text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    update pgflow.worker_functions w
    set
        enabled = false,
        disabled_at = case when w.fenced_at is null then clock_timestamp() else w.disabled_at end,
        disabled_reason = case when w.fenced_at is null then _disable_function.reason else w.disabled_reason end,
        recorded_enabled = case when w.fenced_at is not null then false end,
        recorded_disabled_at = case when w.fenced_at is not null then clock_timestamp() end,
        recorded_disabled_reason = case when w.fenced_at is not null then _disable_function.reason end,
        updated_at = now()
    where w.function_name = _disable_function.function_name and (w.enabled or w.recorded_enabled);
end
$$;
