-- Returns whether any of these workers has a task that is started.
-- Locks: none. Callers: _alone_state, _choose_alone.
create or replace function pgflow._has_started_tasks(worker_ids uuid[]) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
#variable_conflict use_column
begin
    return exists (
        select
        from pgflow.claims c
        cross join lateral unnest(c.run_ids, c.step_slugs, c.task_indexes) as i (run_id, step_slug, task_index)
        -- The limit keeps this a look-up for each.
        cross join lateral (
            select
            from pgflow.step_tasks k
            where k.run_id = i.run_id and k.step_slug = i.step_slug and k.task_index = i.task_index
                and k.status = 'started' and k.last_worker_id = c.worker_id
            limit 1
        ) t
        where c.worker_id = any (_has_started_tasks.worker_ids)
    );
end
$$;
