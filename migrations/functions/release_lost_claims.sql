-- Gives back the tasks of claims whose answers never reached their worker: queued again, visible at
-- once, no attempt counted. These are the worker's claims after the last answer before the loss
-- (`after`; null: there was none), whose starts are not among those that it got answers of since
-- then (`answered`). A server may continue with a claim long after its connection was lost, so
-- later answers don't bound them. Raises PF009 (no list of answers). Returns how many tasks were
-- given back.
-- Locks: as release_tasks. Callers: workers, after a claim that failed without an answer.
create or replace function pgflow.release_lost_claims(worker_id uuid, after timestamptz, answered timestamptz[]) returns int
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
#variable_conflict use_column
declare
    v_run_ids uuid[];
    v_slugs text[];
    v_indexes int[];
    v_attempts int[];
    v_starts timestamptz[];
begin
    if answered is null then
        raise exception 'release_lost_claims got no list of answers' using
            errcode = 'PF009',
            hint = 'Pass the starts of all tasks that were claimed since; an empty list when there are none.';
    end if;
    select array_agg(t.run_id), array_agg(t.step_slug), array_agg(t.task_index), array_agg(t.attempts_count), array_agg(t.started_at)
    into v_run_ids, v_slugs, v_indexes, v_attempts, v_starts
    from (
        select c.run_ids, c.step_slugs, c.task_indexes
        from pgflow.claims c
        where c.worker_id = release_lost_claims.worker_id
            and (release_lost_claims.after is null or c.claimed_at > release_lost_claims.after)
    ) c
    cross join lateral unnest(c.run_ids, c.step_slugs, c.task_indexes) as i (run_id, step_slug, task_index)
    -- The limit keeps this a look-up for each.
    cross join lateral (
        select k.*
        from pgflow.step_tasks k
        where k.run_id = i.run_id and k.step_slug = i.step_slug and k.task_index = i.task_index
        limit 1
    ) t
    where t.status = 'started' and t.last_worker_id = release_lost_claims.worker_id
        and (release_lost_claims.after is null or t.started_at > release_lost_claims.after)
        -- Hashed, as `<> all` need not be.
        and t.started_at not in (select u from unnest(release_lost_claims.answered) u where u is not null);
    if v_run_ids is null then
        return 0;
    end if;
    return pgflow.release_tasks(release_lost_claims.worker_id, v_run_ids, v_slugs, v_indexes, v_attempts, v_starts);
end
$$;
