-- Makes the claims of workers due for recovery now. A claim that another session holds keeps its
-- time, which is 15 seconds away at most.
-- Locks: the workers' claims, skipping what another session holds. Callers: recover_tasks,
-- mark_worker_stopped.
create or replace function pgflow._look_at_claims(worker_ids uuid[]) returns void
language sql
set search_path = pg_catalog, pg_temp
as $$
    update pgflow.claims c
    set look_at = now()
    where c.claim_id in (
        select k.claim_id
        from pgflow.claims k
        where k.worker_id = any (_look_at_claims.worker_ids) and k.look_at > now()
        for update skip locked
    )
$$;
