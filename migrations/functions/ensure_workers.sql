-- Finds the worker functions that somebody should start: enabled, of start mode `http`, without a
-- live worker that takes work, and not invoked within their debounce. Stamps last_invoked_at and
-- returns them. Where pg_net is installed, it invokes those that have a URL by POST, with the
-- function's name as JSON, and with a secret of Supabase Vault as bearer token, where there is one:
-- `pgflow_auth_secret`, else `supabase_service_role_key`; `invoked` says so. The others are for the
-- caller to invoke. What pg_net refuses is warned about, and keeps no other function from being
-- invoked. Calls at the same time share the work.
-- Locks: the functions' rows, skipping what another session holds. Callers: operators' schedulers.
create or replace function pgflow.ensure_workers() returns table (function_name text, invoked boolean, request_id bigint)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    v_has_net constant boolean := to_regprocedure('net.http_post(text,jsonb,jsonb,jsonb,integer)') is not null;
    v_headers jsonb := '{"content-type": "application/json"}';
    v_secret text;
    v_function record;
begin
    if v_has_net and to_regclass('vault.decrypted_secrets') is not null then
        execute $query$
            select s.decrypted_secret
            from vault.decrypted_secrets s
            where s.name in ('pgflow_auth_secret', 'supabase_service_role_key') and s.decrypted_secret <> ''
            order by s.name
            limit 1
        $query$ into v_secret;
        if v_secret <> '' then
            v_headers := v_headers || jsonb_build_object('authorization', 'Bearer ' || v_secret);
        end if;
    end if;
    for v_function in
        update pgflow.worker_functions w
        set last_invoked_at = clock_timestamp()
        from (
            select x.function_name
            from pgflow.worker_functions x
            where x.start_mode = 'http' and x.enabled
                -- A time of the future was stamped before the clock was set back.
                and (x.last_invoked_at is null or x.last_invoked_at <= clock_timestamp() - x.debounce or x.last_invoked_at > clock_timestamp())
                and not exists (
                    select from pgflow.live_workers l where l.function_name = x.function_name and l.deprecated_at is null
                )
            order by x.function_name
            for no key update skip locked
        ) missing
        where w.function_name = missing.function_name
        returning w.function_name, w.http_url
    loop
        ensure_workers.function_name := v_function.function_name;
        ensure_workers.request_id := null;
        ensure_workers.invoked := v_has_net and v_function.http_url is not null;
        if ensure_workers.invoked then
            begin
                execute 'select net.http_post(url => $1, body => $2, headers => $3)'
                into ensure_workers.request_id
                using v_function.http_url, jsonb_build_object('function_name', v_function.function_name), v_headers;
            exception when others then
                ensure_workers.invoked := false;
                -- The message may quote the headers, and goes to the log.
                raise warning 'worker function "%" could not be invoked: % (%)', v_function.function_name,
                    case when v_secret <> '' then 'pg_net refused; its message may hold the secret' else sqlerrm end, sqlstate;
            end;
        end if;
        return next;
    end loop;
end
$$;
