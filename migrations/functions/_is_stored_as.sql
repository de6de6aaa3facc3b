-- Returns whether the flow is stored with this shape, queue mode and routes, and nobody is changing
-- or deleting it at this moment. False also when that is not known: then the definition lock is
-- needed to find out. Raises PF006 (a queue of the flow is not its own).
-- Locks: the flow (shared), without waiting, and not to the end of the transaction: who continues
-- to define another flow takes the definition lock, which comes before. Callers:
-- ensure_flow_compiled.
create or replace function pgflow._is_stored_as(flow_slug text, shape jsonb, queue_mode text, routes jsonb) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    v_flow text := _is_stored_as.flow_slug;
    v_is_stored boolean := false;
begin
    -- Anywhere else this would not see what was committed since the transaction began;
    -- _lock_definitions refuses it.
    if current_setting('transaction_isolation') <> 'read committed' then
        return false;
    end if;
    begin
        -- The lock of _lock_flow.
        if pg_try_advisory_xact_lock_shared(x'7067666d'::int, hashtext(v_flow))
            and exists (select from pgflow.flows f where f.flow_slug = v_flow)
            and not exists (select from pgflow.flow_deletions d where d.flow_slug = v_flow)
            and pgflow._shape_differences(shape, pgflow._flow_shape(v_flow)) = '{}'
            and pgflow._route_differences(v_flow, _is_stored_as.queue_mode, routes) = '{}'
        then
            perform pgflow._assert_queues(
                v_flow,
                array(select q.queue_name from pgflow.flow_queues q where q.flow_slug = v_flow order by q.step_index),
                owned => true
            );
            v_is_stored := true;
        end if;
        -- Undoing a subtransaction is what releases a lock before the end.
        raise no_data_found;
    exception when no_data_found then
        return v_is_stored;
    end;
end
$$;
