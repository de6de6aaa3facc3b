-- Records the heartbeats of the workers of one process. Returns whether each is deprecated, and
-- why: then it should finish what it runs and stop. One that is unknown or has stopped returns no
-- row. A silence of half of `lost_after` begins a new series of heartbeats (heard_since), see
-- recover_tasks. A worker whose row somebody holds, as who deprecates it does, is answered and
-- recorded with its next one: the others of its process must not fall silent with it, and recovery
-- does not take it for dead meanwhile.
-- Locks: the workers' rows, skipping what another session holds. Callers: workers, every 5 s.
create or replace function pgflow.worker_heartbeats(worker_ids uuid[]) returns table (worker_id uuid, is_deprecated boolean, deprecated_reason text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    update pgflow.workers w
    set last_heartbeat_at = clock_timestamp(),
        heard_since = case
            when w.last_heartbeat_at < clock_timestamp() - (select i.lost_after from pgflow.installation i where i.singleton) / 2 then clock_timestamp()
            else w.heard_since
        end,
        lost_at = null
    from (
        select x.worker_id
        from pgflow.workers x
        where x.worker_id = any (worker_heartbeats.worker_ids) and x.stopped_at is null
        order by x.worker_id
        for no key update skip locked
    ) alive
    where w.worker_id = alive.worker_id;
    return query
    select w.worker_id, w.deprecated_at is not null, w.deprecated_reason
    from pgflow.workers w
    where w.worker_id = any (worker_heartbeats.worker_ids) and w.stopped_at is null;
end
$$;
