-- Creates the queues of a flow, whose names have been checked (_assert_queues). Raises PF006 when
-- somebody else creates one of them at this moment under another spelling: PGMQ's lock of a name
-- tells spellings apart.
-- Locks: needs the definition lock. Callers: create_flow, _define_flow.
create or replace function pgflow._create_queues(flow_slug text, queue_names text[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
-- PGMQ's functions do not compile without it.
set standard_conforming_strings = on
as $$
declare
    v_queue text;
    v_twin text;
begin
    for v_queue in select distinct q from unnest(_create_queues.queue_names) q order by q loop
        begin
            perform pgmq.create(v_queue);
        exception when unique_violation or duplicate_table then
            raise exception 'flow "%": somebody else has created queue "%" at the same moment', _create_queues.flow_slug, v_queue using
                errcode = 'PF006',
                detail = sqlerrm,
                hint = 'A flow never adopts a queue that it did not create. Choose another slug, or drop the queue if nobody uses it.';
        end;
        -- It was committed between the check and the creation, which then found the table there and
        -- took it.
        select m.queue_name::text into v_twin from pgmq.meta m where lower(m.queue_name::text collate "C") = v_queue and m.queue_name::text <> v_queue limit 1;
        if found then
            raise exception 'flow "%": somebody else has created queue "%" at the same moment, as "%"', _create_queues.flow_slug, v_queue, v_twin using
                errcode = 'PF006',
                hint = 'A flow never adopts a queue that it did not create. Choose another slug, or drop the queue if nobody uses it.';
        end if;
        insert into pgflow.wakeups (queue_name) values (v_queue) on conflict (queue_name) do nothing;
        -- A queue swings between empty and full: vacuum and fresh statistics after a thousand
        -- changes, however large it once was. A message is hidden at least once, which has room on
        -- its page.
        execute format(
            'alter table pgmq.%I set (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
                autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 1000)',
            'q_' || v_queue
        );
    end loop;
end
$$;
