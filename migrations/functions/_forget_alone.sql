-- Removes the note about an attempt that runs alone from a worker's row. When another session holds
-- the row the note stays, and the next claim removes it.
-- Locks: the worker's row, skipped when held. Callers: _alone_state, claim_tasks.
create or replace function pgflow._forget_alone(worker_id uuid) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    update pgflow.workers w
    set alone_queue = null, alone_message = null, alone_attempt = null, alone_since = null
    from (
        select k.worker_id from pgflow.workers k where k.worker_id = _forget_alone.worker_id for no key update skip locked
    ) k
    where w.worker_id = k.worker_id;
end
$$;
