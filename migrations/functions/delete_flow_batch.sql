-- Removes a part of a flow, to be called until `is_done`; each call is short, so in a transaction
-- of its own it keeps nobody waiting. The first one only marks the flow: no run and no worker of it
-- starts from then on, and its workers are asked to stop. Each further one removes at most
-- `max_runs` runs, the first ones by id, and no further run once 100,000 tasks are together; the
-- one that finds no run is delete_flow_and_data, and the flow is gone. When nobody calls it again
-- the flow stays marked, and keeps the runs that it still has. `removed_runs`: how many this call
-- removed. Raises PF001 (no flow has exactly this slug), PF009 (max_runs below 1), PF011
-- (isolation; as delete_flow_and_data).
-- Locks: the flow; the first call its row and its workers, the last as delete_flow_and_data, the
-- others runs, tasks, step states. Callers: operators.
create or replace function pgflow.delete_flow_batch(flow_slug text, max_runs int default 1000) returns table (removed_runs bigint, is_done boolean)
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
declare
    v_flow text := delete_flow_batch.flow_slug;
    v_started_at timestamptz;
    v_after uuid;
    v_run_ids uuid[];
begin
    if max_runs is null or max_runs < 1 then
        raise exception 'max_runs is %; it must be at least 1', coalesce(max_runs::text, 'null') using
            errcode = 'PF009',
            hint = 'Leave it out for 1,000.';
    end if;
    select d.started_at, d.last_run_id into v_started_at, v_after from pgflow.flow_deletions d where d.flow_slug = v_flow;
    -- Decided before the flow is locked: the definition lock comes first.
    if not exists (select from pgflow.flows f where f.flow_slug = v_flow) or (
        v_started_at is not null
        and not exists (select from pgflow.runs r where r.flow_slug = v_flow and (v_after is null or r.run_id > v_after))
    ) then
        return query select pgflow.delete_flow_and_data(v_flow), true;
        return;
    end if;

    -- A run that is being started is waited for; so is another call.
    perform pgflow._lock_flow(v_flow, alone => true);
    if not exists (select from pgflow.flows f where f.flow_slug = v_flow) then
        return query select 0::bigint, true;
        return;
    end if;
    insert into pgflow.flow_deletions (flow_slug) values (v_flow) on conflict (flow_slug) do nothing;
    if found then
        -- As add_step does it: whoever started a transaction of REPEATABLE READ before this would
        -- not see the mark, and is refused (40001) when it starts a run. Nothing is removed yet,
        -- since who reports the end of a run locks the run first, and then this row.
        perform from pgflow.flows f where f.flow_slug = v_flow for update;
        update pgflow.flows f set flow_slug = f.flow_slug where f.flow_slug = v_flow;
        perform pgflow._deprecate_workers(null, v_flow, 'the flow is being deleted');
        return query select 0::bigint, false;
        return;
    end if;
    select d.last_run_id into v_after from pgflow.flow_deletions d where d.flow_slug = v_flow;

    -- In the order of the ids, from where the last call ended: no index leads from a flow to its
    -- runs.
    select array_agg(x.run_id order by x.run_id) into v_run_ids
    from (
        select
            r.run_id,
            sum(r.tasks) over (order by r.run_id rows unbounded preceding) - r.tasks as tasks_before
        from (
            select e.run_id, (select coalesce(sum(s.initial_tasks), 0) from pgflow.step_states s where s.run_id = e.run_id) as tasks
            from (
                select k.run_id
                from pgflow.runs k
                where k.flow_slug = v_flow and k.run_id > coalesce(v_after, '00000000-0000-0000-0000-000000000000')
                order by k.run_id
                limit delete_flow_batch.max_runs
                for update
            ) e
        ) r
    ) x
    where x.tasks_before < 100000;
    delete from pgflow.step_tasks t where t.run_id = any (v_run_ids);
    delete from pgflow.step_states s where s.run_id = any (v_run_ids);
    delete from pgflow.runs r where r.run_id = any (v_run_ids);
    update pgflow.flow_deletions d set last_run_id = coalesce(v_run_ids[cardinality(v_run_ids)], v_after) where d.flow_slug = v_flow;
    return query select coalesce(cardinality(v_run_ids), 0)::bigint, false;
end
$$;
