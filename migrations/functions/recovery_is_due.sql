-- Returns whether recover_tasks has something to look at: a claim that is due, or a worker that has
-- been silent for `lost_after` and is not known to be lost. Takes no lock, so that idle workers
-- need no second connection.
-- Locks: none. Callers: workers, with their heartbeats.
create or replace function pgflow.recovery_is_due() returns boolean
language sql stable
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
    select exists (select from pgflow.claims c where c.look_at <= clock_timestamp())
        or exists (
            select
            from pgflow.workers w
            where w.stopped_at is null and w.lost_at is null
                and w.last_heartbeat_at <= clock_timestamp() - (select i.lost_after from pgflow.installation i where i.singleton)
        )
$$;
