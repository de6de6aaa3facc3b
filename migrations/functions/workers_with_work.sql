-- Returns the workers among these that have a visible message to claim. Many idle workers of a
-- process ask in one call, instead of a claim each.
-- The answer is a hint: a claim decides. A worker that is unknown, stopped or deprecated is not in
-- it; heartbeats tell it so. Takes a share lock on each queue until the end of the transaction, so
-- ask about at most 100 workers at a time.
-- Locks: none on rows. Callers: workers, as often as they look by themselves.
create or replace function pgflow.workers_with_work(worker_ids uuid[]) returns setof uuid
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
-- With statistics from when a queue was empty, the oldest message is looked for in all of them.
set enable_seqscan = off
as $$
declare
    v_queue text;
    v_ids uuid[];
    v_oldest timestamptz;
begin
    for v_queue, v_ids in
        select w.queue_name, array_agg(w.worker_id)
        from pgflow.workers w
        where w.worker_id = any (workers_with_work.worker_ids) and w.stopped_at is null and w.deprecated_at is null
        group by w.queue_name
        order by w.queue_name
    loop
        begin
            -- Not `vt <= clock_timestamp()`: that reads what is hidden, too.
            execute format('select min(q.vt) from pgmq.%I q', 'q_' || v_queue) into v_oldest;
        exception when undefined_table then
            -- Its flow is deleted; the next heartbeat tells the worker.
            v_oldest := null;
        end;
        if v_oldest <= clock_timestamp() then
            return query select u from unnest(v_ids) u;
        end if;
    end loop;
end
$$;
