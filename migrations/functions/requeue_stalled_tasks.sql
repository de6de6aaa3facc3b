-- Recovers what pgflow.recover_tasks finds, batch after batch, up to 10 of them in this
-- transaction. Returns how many tasks were queued again.
-- Locks: as recover_tasks. Callers: pg_cron, operators.
create or replace function pgflow.requeue_stalled_tasks() returns int
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_batch record;
    v_requeued int := 0;
begin
    for v_round in 1..10 loop
        select r.requeued, r.more into strict v_batch from pgflow.recover_tasks() r;
        v_requeued := v_requeued + v_batch.requeued;
        exit when not v_batch.more;
    end loop;
    return v_requeued;
end
$$;
