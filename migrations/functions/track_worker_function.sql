-- Records that a worker function exists, before its first worker registers. Known already: only its
-- start mode and updated_at change; a disabled function stays disabled. Raises PF009 (start mode,
-- or no name).
-- Locks: the function's row. Callers: workers at startup.
create or replace function pgflow.track_worker_function(function_name text, start_mode text default 'process') returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    if coalesce(track_worker_function.function_name, '') = '' then
        raise exception 'a worker function needs a name, it was given %', case when track_worker_function.function_name is null then 'null' else 'an empty one' end using
            errcode = 'PF009',
            hint = 'Pass the name under which the function is deployed.';
    end if;
    if start_mode is null or start_mode not in ('process', 'http') then
        raise exception 'start mode "%" of function "%" is unknown; it is "process" or "http"', start_mode, function_name using
            errcode = 'PF009',
            hint = 'Leave it out for "process".';
    end if;
    insert into pgflow.worker_functions (function_name, start_mode)
    values (track_worker_function.function_name, track_worker_function.start_mode)
    on conflict (function_name) do update set start_mode = excluded.start_mode, updated_at = now();
end
$$;
