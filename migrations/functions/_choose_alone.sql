-- Decides for a worker that has read messages of tasks that run alone, and whose process makes no
-- room for any yet: the first of them that no other process makes room for becomes its own, which
-- each worker of the process is noted to do. A process that runs nothing takes the first of all.
-- Returns the message, or NULL when it takes none, and whether the worker may start its attempt at
-- once. A note of another process counts for 5 minutes only: a worker that lives without claiming
-- would keep the task from running forever.
-- Locks: the rows of the process's workers. It takes none when another session holds one. The
-- caller holds the tasks. Callers: claim_tasks, start_tasks.
create or replace function pgflow._choose_alone(worker_id uuid, queue_name text, message_ids bigint[], out message_id bigint, out is_free boolean)
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
#variable_conflict use_column
declare
    v_peers uuid[] := pgflow._peers_of_worker(_choose_alone.worker_id);
    v_is_idle boolean := not pgflow._has_started_tasks(v_peers);
    v_chosen bigint;
    v_count int;
begin
    is_free := false;
    select m.id into v_chosen
    from unnest(_choose_alone.message_ids) with ordinality as m (id, n)
    where v_is_idle or not exists (
        select
        from pgflow.workers w
        where w.alone_queue = _choose_alone.queue_name and w.alone_message = m.id and w.alone_since > clock_timestamp() - interval '5 minutes'
            and w.worker_id <> all (v_peers)
            and w.stopped_at is null and w.deprecated_at is null and w.lost_at is null
            and w.last_heartbeat_at > clock_timestamp() - (select i.lost_after from pgflow.installation i where i.singleton)
    )
    order by m.n
    limit 1;
    if v_chosen is null then
        return;
    end if;
    select count(*) into v_count
    from (
        select from pgflow.workers w where w.worker_id = any (v_peers) order by w.worker_id for no key update skip locked
    ) locked;
    if v_count <> cardinality(v_peers) then
        return;
    end if;
    update pgflow.workers w
    set
        alone_queue = _choose_alone.queue_name, alone_message = v_chosen, alone_since = clock_timestamp(),
        alone_attempt = (
            select t.attempts_count + 1
            from pgflow.step_tasks t
            where t.queue_name = _choose_alone.queue_name and t.message_id = v_chosen
            limit 1
        )
    where w.worker_id = any (v_peers);
    message_id := v_chosen;
    is_free := v_is_idle and cardinality(v_peers) = 1;
end
$$;
