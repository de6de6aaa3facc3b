-- Removes the worker functions that go with a deleted flow: nothing starts them any more, and one
-- that was disabled would be reported forever. A worker that is started again makes its function
-- known again. Returns how many.
-- Locks: the functions' rows, skipping what another session holds: the deletion holds workers, and
-- a fence holds functions and waits for workers.
-- Callers: delete_flow_and_data.
create or replace function pgflow._forget_worker_functions(flow_slug text, queue_names text[]) returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    v_count bigint;
begin
    delete from pgflow.worker_functions f
    using (
        select x.function_name
        from pgflow.worker_functions x
        where x.function_name in (
            select o from pgflow._worker_functions_of(_forget_worker_functions.flow_slug, _forget_worker_functions.queue_names) o
        )
        order by x.function_name
        for update skip locked
    ) gone
    where f.function_name = gone.function_name;
    get diagnostics v_count = row_count;
    return v_count;
end
$$;
