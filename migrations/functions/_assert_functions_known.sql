-- Locks worker functions for a change, in the order of their names, and refuses when one is not
-- known: then nothing happens to any of them. Raises PF001 (unknown functions, all named), PF009
-- (no function).
-- Locks: the functions' rows. Callers: fence_worker_functions, unfence_worker_functions,
-- deprecate_workers.
create or replace function pgflow._assert_functions_known(function_names text[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    v_unknown text;
    v_count int;
begin
    if cardinality(function_names) is distinct from greatest(cardinality(function_names), 1) or array_position(function_names, null) is not null then
        raise exception 'no worker function was named' using errcode = 'PF009', hint = 'Name at least one; they are in pgflow.worker_functions.';
    end if;
    perform from (
        select from pgflow.worker_functions w where w.function_name = any (function_names) order by w.function_name for no key update
    ) locked;
    select string_agg(format('"%s"', n.name), ', ' order by n.name), count(*) into v_unknown, v_count
    from (select distinct unnest(function_names) as name) n
    where not exists (select from pgflow.worker_functions w where w.function_name = n.name);
    if v_unknown is not null then
        raise exception 'worker % not known', case v_count when 1 then 'function ' || v_unknown || ' is' else 'functions ' || v_unknown || ' are' end using
            errcode = 'PF001',
            hint = 'Nothing was changed. See pgflow.worker_functions; a plain flow''s function is named like the flow, a step worker''s like its queue.';
    end if;
end
$$;
