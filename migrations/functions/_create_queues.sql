-- Creates queues whose names have been checked (_assert_queues).
-- Locks: needs the definition lock. Callers: create_flow, _define_flow.
create or replace function pgflow._create_queues(queue_names text[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    v_queue text;
begin
    for v_queue in select distinct q from unnest(_create_queues.queue_names) q order by q loop
        perform pgmq.create(v_queue);
        -- A queue swings between empty and full: vacuum and fresh statistics after a thousand changes, however large it once was.
        execute format(
            'alter table pgmq.%I set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
                autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 1000)',
            'q_' || v_queue
        );
    end loop;
end
$$;
