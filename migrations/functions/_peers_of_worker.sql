-- The live workers of a worker's process, itself among them: what ends with the process. A worker
-- that has not said which its process is stands for itself.
-- Locks: none. Callers: _alone_state, _choose_alone.
create or replace function pgflow._peers_of_worker(worker_id uuid) returns uuid[]
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    return array(
        select p.worker_id
        from pgflow.workers w
        join pgflow.workers p on p.worker_id = w.worker_id or (p.host = w.host and p.pid = w.pid)
        where w.worker_id = _peers_of_worker.worker_id
            and (
                p.worker_id = w.worker_id
                or (
                    p.stopped_at is null and p.lost_at is null
                    and p.last_heartbeat_at > clock_timestamp() - (select i.lost_after from pgflow.installation i where i.singleton)
                )
            )
        order by p.worker_id
    );
end
$$;
