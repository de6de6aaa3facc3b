-- Raises unless a flow may use these queues, all checked before any is created: PF006 when one
-- belongs to another owner or is not what it should be. A name that is taken is never adopted: its
-- messages would be read by the wrong worker. `owned`: whether this flow's stored definition names
-- them; then they must be there, else they must not.
-- Locks: needs the definition lock; takes PGMQ's lock of each name, so that nobody creates one
-- meanwhile. Callers: create_flow, _define_flow, ensure_flow_compiled.
create or replace function pgflow._assert_queues(flow_slug text, queue_names text[], owned boolean) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    v_flow text := _assert_queues.flow_slug;
    v_queue text;
    v_other text;
    v_listed text[];
    v_tables text[];
begin
    for v_queue in select distinct q from unnest(_assert_queues.queue_names) q order by q loop
        perform pgmq.validate_queue_name(v_queue);
        if to_regprocedure('pgmq.acquire_queue_lock(text)') is not null then
            perform pgmq.acquire_queue_lock(v_queue);
        end if;

        select case q.queue_mode when 'step' then format('flow "%s", step "%s"', q.flow_slug, q.step_slug) else format('flow "%s"', q.flow_slug) end
        into v_other
        from pgflow.flow_queues q
        where q.queue_name = v_queue and q.flow_slug <> v_flow
        order by q.queue_mode = 'flow', q.step_slug is not null, q.flow_slug
        limit 1;
        if found then
            raise exception 'flow "%": queue "%" already belongs to %', v_flow, v_queue, v_other using
                errcode = 'PF006',
                hint = 'Queue names ignore case. Choose another slug.';
        end if;

        select array_agg(m.queue_name::text order by m.queue_name::text collate "C") into v_listed
        from pgmq.meta m
        where lower(m.queue_name::text collate "C") = v_queue;
        -- The archive counts, too: pgmq.create would take over one that is left, and its old
        -- messages stand in the way of new ones.
        v_tables := array(
            select t.name
            from (values (1, 'q_' || v_queue), (2, 'a_' || v_queue)) t (n, name)
            where to_regclass(format('pgmq.%I', t.name)) is not null
            order by t.n
        );

        if cardinality(v_listed) > 1 then
            raise exception 'flow "%": queue "%" is listed under several spellings: %', v_flow, v_queue, array_to_string(v_listed, ', ') using
                errcode = 'PF006',
                hint = 'They are one table. Drop the queue that nobody uses from pgmq.meta, or choose another slug.';
        elsif owned and v_listed is null then
            raise exception 'flow "%": its queue "%" is no longer listed in pgmq.meta', v_flow, v_queue using
                errcode = 'PF006',
                hint = 'Somebody dropped it, and its messages with it. Restore it from a backup, or use a new flow slug.';
        elsif owned and cardinality(v_tables) < 2 then
            raise exception 'flow "%": its queue "%" is listed in pgmq.meta, but its table is gone', v_flow, v_queue using
                errcode = 'PF006',
                hint = 'Somebody dropped it, and its messages with it. Restore it from a backup, or use a new flow slug.';
        elsif not owned and v_listed is not null then
            raise exception 'flow "%": a queue "%" exists, and no flow owns it', v_flow, v_listed[1] using
                errcode = 'PF006',
                hint = 'A flow never adopts a queue that it did not create. Choose another slug, or drop the queue if nobody uses it.';
        elsif not owned and v_tables <> '{}' then
            raise exception 'flow "%": a table pgmq."%" exists, though pgmq.meta lists no such queue', v_flow, v_tables[1] using
                errcode = 'PF006',
                hint = 'It is left over from a queue of that name. Drop it if nobody uses it, or choose another slug.';
        end if;
    end loop;
end
$$;
