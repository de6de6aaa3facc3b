-- Says where a worker function of start mode `http` is invoked; NULL: nowhere, so that whoever
-- calls ensure_workers invokes it. Raises PF001 (unknown function), PF009 (no http or https URL).
-- Locks: the function's row. Callers: operators.
create or replace function pgflow.set_worker_function_url(function_name text, url text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    if set_worker_function_url.url !~ '^https?://[^/?#[:space:]][^[:space:]]*$' then
        raise exception 'the URL of worker function "%" is not of the form http(s)://host/path', set_worker_function_url.function_name using
            errcode = 'PF009',
            hint = 'Pass the complete URL that starts the function when something is posted to it.';
    end if;
    perform pgflow._assert_functions_known(array[set_worker_function_url.function_name]);
    update pgflow.worker_functions w
    set http_url = set_worker_function_url.url, updated_at = now()
    where w.function_name = set_worker_function_url.function_name;
end
$$;
