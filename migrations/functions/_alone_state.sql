-- What the note on a worker's row about an attempt that runs alone means to its next claim:
--   over   the attempt has ended, or is no longer to be made by this process: the note is removed
--   wait   the attempt runs, other tasks of the process still do, or another worker of it reads the
--          queue
--   ready  this worker is to start the attempt now, and nothing else
-- Locks: the worker's row, skipped when another session holds it.
-- Callers: claim_tasks, start_tasks.
create or replace function pgflow._alone_state(worker_id uuid) returns text
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
#variable_conflict use_column
declare
    v_worker pgflow.workers;
    v_task record;
    v_peers uuid[] := pgflow._peers_of_worker(_alone_state.worker_id);
begin
    select w.* into v_worker from pgflow.workers w where w.worker_id = _alone_state.worker_id;
    select t.status, t.last_worker_id, t.attempts_count into v_task
    from pgflow.step_tasks t
    where t.queue_name = v_worker.alone_queue and t.message_id = v_worker.alone_message
    limit 1;
    if v_task.status = 'started' and v_task.attempts_count = v_worker.alone_attempt and v_task.last_worker_id = any (v_peers) then
        return 'wait';
    end if;
    if v_task.status = 'queued' and v_task.attempts_count = v_worker.alone_attempt - 1
        -- The worker that reads its queue may have stopped meanwhile.
        and exists (
            select
            from pgflow.workers w
            where w.worker_id = any (v_peers) and w.queue_name = v_worker.alone_queue and w.deprecated_at is null
        )
    then
        return case
            when v_worker.queue_name <> v_worker.alone_queue then 'wait'
            -- A claim that another worker of the process had begun before the note was made has
            -- ended by then.
            when cardinality(v_peers) > 1 and v_worker.alone_since > clock_timestamp() - interval '1 second' then 'wait'
            when pgflow._has_started_tasks(v_peers) then 'wait'
            else 'ready'
        end;
    end if;
    perform pgflow._forget_alone(v_worker.worker_id);
    return 'over';
end
$$;
