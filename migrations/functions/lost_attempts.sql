-- Says which of these attempts have lost their meaning: their run or step has ended or was deleted,
-- or recovery gave the task to somebody else. Returns their positions, counted from 1. Raises PF009
-- (arrays of different lengths).
-- Locks: none. Callers: workers, with their heartbeats.
create or replace function pgflow.lost_attempts(run_ids uuid[], step_slugs text[], task_indexes int[], attempts int[]) returns setof int
language plpgsql stable
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
begin
    if cardinality(run_ids) is distinct from cardinality(step_slugs) or cardinality(run_ids) is distinct from cardinality(task_indexes)
        or cardinality(run_ids) is distinct from cardinality(attempts)
    then
        raise exception 'lost_attempts got arrays of different lengths' using errcode = 'PF009', hint = 'Pass one element of each array for each attempt.';
    end if;
    return query
    select i.n::int
    from unnest(lost_attempts.run_ids, lost_attempts.step_slugs, lost_attempts.task_indexes, lost_attempts.attempts)
        with ordinality as i (run_id, step_slug, task_index, attempt, n)
    left join lateral (
        -- The limit keeps this a look-up per attempt, however many tasks there are.
        select t.status, t.attempts_count
        from pgflow.step_tasks t
        where t.run_id = i.run_id and t.step_slug = i.step_slug and t.task_index = i.task_index
        limit 1
    ) t on true
    where t.status is distinct from 'started' or t.attempts_count <> i.attempt
    order by i.n;
end
$$;
