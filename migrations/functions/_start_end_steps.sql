-- Starts the end steps of runs that end in this transaction, once their end is recorded: `on = end`
-- after any end, `on = failure` when the run did not complete. Only this function creates the
-- state, the task and the message of an end step; one that does not run has no row. Raises PF012 (a
-- run that has not ended).
-- Locks: needs the runs' rows; no other session knows the new states, tasks and messages yet.
-- Callers: start_flows, _settle_steps, _fail_run; only for runs that have end steps.
create or replace function pgflow._start_end_steps(run_ids uuid[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
    v_run_id uuid;
    v_run_ids uuid[];
    v_slugs text[];
begin
    select u into v_run_id
    from unnest(_start_end_steps.run_ids) u
    where not exists (select from pgflow.runs r where r.run_id = u and r.status <> 'started')
    limit 1;
    if found then
        raise exception 'run % has not ended, and its end steps were to start', v_run_id using errcode = 'PF012';
    end if;

    -- Each row is looked up by itself: see _advance_runs.
    with fired as (
        insert into pgflow.step_states (flow_slug, run_id, step_slug, status, initial_tasks, remaining_tasks, created_at, started_at)
        select r.flow_slug, r.run_id, d.step_slug, 'started', 1, 1, r.started_at, r.started_at
        from unnest(_start_end_steps.run_ids) as x (run_id)
        cross join lateral (
            select k.flow_slug, k.run_id, k.status, greatest(clock_timestamp(), k.completed_at, k.failed_at) as started_at
            from pgflow.runs k
            where k.run_id = x.run_id
            limit 1
        ) r
        cross join lateral (
            select k.step_slug
            from pgflow.steps k
            where k.flow_slug = r.flow_slug and (k.runs_on = 'end' or (k.runs_on = 'failure' and r.status <> 'completed'))
            offset 0
        ) d
        order by r.run_id, d.step_slug
        returning run_id, step_slug
    )
    select array_agg(f.run_id order by f.run_id, f.step_slug), array_agg(f.step_slug order by f.run_id, f.step_slug)
    into v_run_ids, v_slugs
    from fired f;
    if v_run_ids is not null then
        perform pgflow._queue_tasks(v_run_ids, v_slugs, cardinality(v_run_ids));
    end if;
end
$$;
