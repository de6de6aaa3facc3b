-- Tells the workers of functions to stop: they finish what they run, and take nothing more. The
-- functions stay as they are, so whoever supervises the workers may start new ones; a fence
-- (fence_worker_functions) keeps those out. Returns the ids of the workers that were told now.
-- Raises PF001 (unknown functions; nothing is changed), PF009 (no function), PF011 (isolation).
-- Locks: the functions' rows, then their workers'. Callers: operators.
create or replace function pgflow.deprecate_workers(function_names text[], reason text default null) returns setof uuid
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    perform pgflow._assert_functions_known(deprecate_workers.function_names);
    return query select w from pgflow._deprecate_workers(deprecate_workers.function_names, null, deprecate_workers.reason) w;
end
$$;
