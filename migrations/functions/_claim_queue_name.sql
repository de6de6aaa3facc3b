-- Makes sure that a flow owns a queue: reuses it when a route of this flow names it, else creates it.
-- Raises PF010 when the name is too long, PF006 when the queue belongs to somebody else or is not what it should be. A name that
-- is taken is never adopted: its messages would be read by the wrong worker.
-- `owned`: whether this flow's stored routes already name the queue.
-- Locks: needs the definition lock. Callers: create_flow, ensure_flow_compiled.
create or replace function pgflow._claim_queue_name(flow_slug text, queue_name text, owned boolean) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    v_flow text := _claim_queue_name.flow_slug;
    v_queue text := _claim_queue_name.queue_name;
    v_other text;
    v_listed text[];
begin
    if length(v_queue) > 47 then
        raise exception 'flow "%": queue name "%" has % characters; the limit is 47', v_flow, v_queue, length(v_queue) using
            errcode = 'PF010',
            hint = 'Use a shorter slug.';
    end if;
    perform pgmq.validate_queue_name(v_queue);

    select s.flow_slug into v_other
    from pgflow.steps s
    where s.queue_name = v_queue and s.flow_slug <> v_flow
    order by s.flow_slug
    limit 1;
    if v_other is null then
        select f.flow_slug into v_other
        from pgflow.flows f
        where lower(f.flow_slug) = v_queue and f.flow_slug <> v_flow
        order by f.flow_slug
        limit 1;
    end if;
    if v_other is not null then
        raise exception 'flow "%": queue "%" already belongs to flow "%"', v_flow, v_queue, v_other using
            errcode = 'PF006',
            hint = 'Queue names ignore case. Choose another slug.';
    end if;

    select array_agg(m.queue_name::text order by m.queue_name::text) into v_listed
    from pgmq.meta m
    where lower(m.queue_name::text) = v_queue;

    if cardinality(v_listed) > 1 then
        raise exception 'flow "%": queue "%" is listed under several spellings: %', v_flow, v_queue, array_to_string(v_listed, ', ') using
            errcode = 'PF006',
            hint = 'They are one table. Drop the queue that nobody uses from pgmq.meta, or choose another slug.';
    end if;
    if owned then
        if v_listed is null then
            raise exception 'flow "%": its queue "%" is no longer listed in pgmq.meta', v_flow, v_queue using
                errcode = 'PF006',
                hint = 'Somebody dropped it, and its messages with it. Restore it from a backup, or use a new flow slug.';
        end if;
        return;
    end if;
    if v_listed is not null then
        raise exception 'flow "%": a queue "%" exists, and no flow owns it', v_flow, v_listed[1] using
            errcode = 'PF006',
            hint = 'A flow never adopts a queue that it did not create. Choose another slug, or drop the queue if nobody uses it.';
    end if;
    perform pgmq.create(v_queue);
    -- A queue swings between empty and full: vacuum and fresh statistics after a thousand changes, however large it once was.
    execute format(
        'alter table pgmq.%I set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
            autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 1000)',
        'q_' || v_queue
    );
end
$$;
