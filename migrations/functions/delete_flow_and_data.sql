-- Removes a flow permanently, in one transaction: its runs, whatever their status, with all that
-- belongs to them, its definition, and its queues with their messages. Worker functions that served
-- nothing else and have no live worker go too. Its running workers are marked deprecated, so that
-- they stop by themselves. Returns how many runs were removed. A flow with many runs is better
-- emptied by delete_flow_batch, which calls this at last: until this commits, no other flow can be
-- defined. Only the exact slug will do. A queue that somebody has dropped already is no obstacle;
-- one that another flow uses stays. Raises PF001 (no flow has exactly this slug), PF011 (a
-- publication that PGMQ's tables are not fit for).
-- Locks: definitions, the flow, workers, runs, claims, tasks, step states, the queues' tables, the
-- flow's row, and at last worker functions, which it does not wait for.
-- Callers: operators, delete_flow_batch, ensure_flow_compiled.
create or replace function pgflow.delete_flow_and_data(flow_slug text) returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
-- PGMQ's functions do not compile without it.
set standard_conforming_strings = on
set jit = off
as $$
#variable_conflict use_column
declare
    v_flow text := delete_flow_and_data.flow_slug;
    v_similar text;
    v_queues text[];
    v_queue text;
    v_count bigint;
begin
    perform pgflow._lock_definitions();
    -- A run that is being started is waited for; one that comes later finds no flow.
    perform pgflow._lock_flow(v_flow, alone => true);
    if not exists (select from pgflow.flows f where f.flow_slug = v_flow) then
        select f.flow_slug into v_similar from pgflow.flows f where lower(f.flow_slug collate "C") = lower(v_flow collate "C") limit 1;
        raise exception 'flow "%" is not defined in this database; nothing was deleted', v_flow using
            errcode = 'PF001',
            hint = case when v_similar is null then 'Check the slug.' else format('There is a flow "%s": write it exactly so to delete it.', v_similar) end;
    end if;
    perform pgflow._deprecate_workers(null, v_flow, 'the flow was deleted');

    perform from (
        select from pgflow.runs r where r.flow_slug = v_flow order by r.run_id for update
    ) locked;
    -- Recovery would remove them too, once it finds none of their tasks. Those of runs that went
    -- before by the worker, which serves one flow.
    delete from pgflow.claims c
    where exists (
        select
        from unnest(c.run_ids) i (run_id)
        cross join lateral (select from pgflow.runs r where r.run_id = i.run_id and r.flow_slug = v_flow limit 1) r
    ) or exists (select from pgflow.workers w where w.worker_id = c.worker_id and w.flow_slug = v_flow);
    delete from pgflow.step_tasks t using pgflow.runs r where r.flow_slug = v_flow and t.run_id = r.run_id;
    delete from pgflow.step_states s using pgflow.runs r where r.flow_slug = v_flow and s.run_id = r.run_id;
    delete from pgflow.runs r where r.flow_slug = v_flow;
    get diagnostics v_count = row_count;

    v_queues := array(
        select q.queue_name
        from pgflow.flow_queues q
        where q.flow_slug = v_flow
            and not exists (select from pgflow.flow_queues o where o.queue_name = q.queue_name and o.flow_slug <> v_flow)
    );
    for v_queue in
        select m.queue_name::text
        from pgmq.meta m
        where lower(m.queue_name::text collate "C") = any (v_queues)
        order by m.queue_name::text
    loop
        begin
            perform pgmq.drop_queue(v_queue);
        exception when object_not_in_prerequisite_state then
            raise exception 'queue "%" of flow "%" can not be dropped: %', v_queue, v_flow, sqlerrm using
                errcode = 'PF011',
                hint = 'A publication has tables of PGMQ that have no key. As their owner: ' || (
                    select string_agg(format('alter table %s replica identity full;', c.oid::regclass), ' ' order by c.relname)
                    from pg_class c
                    where c.relnamespace = 'pgmq'::regnamespace and c.relkind = 'r' and c.relpersistence = 'p' and c.relreplident = 'd'
                        and not exists (select from pg_index i where i.indrelid = c.oid and i.indisprimary)
                );
        end;
    end loop;
    -- Also of a queue that somebody has dropped.
    delete from pgflow.wakeups k where k.queue_name = any (v_queues);

    delete from pgflow.flow_deletions d where d.flow_slug = v_flow;
    delete from pgflow.deps d where d.flow_slug = v_flow;
    delete from pgflow.steps s where s.flow_slug = v_flow;
    delete from pgflow.flows f where f.flow_slug = v_flow;
    perform pgflow._forget_worker_functions(v_flow, v_queues);
    return v_count;
end
$$;
