-- Defines a plain flow and creates its queue; the same slug again returns the flow as it is stored,
-- options included. Raises PF004 (slug or option), PF006 (queue collision), PF010 (slug too long
-- for a queue name), PF011 (a flow with step queues).
-- Locks: definitions. Callers: SQL users.
create or replace function pgflow.create_flow(
    flow_slug text,
    max_attempts int default null,
    base_delay int default null,
    timeout int default null,
    max_delay int default null,
    give_up_after int default null
) returns setof pgflow.flow_record
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    v_slug text := create_flow.flow_slug;
    v_queues text[] := array[lower(create_flow.flow_slug collate "C")];
    v_flow pgflow.flows;
begin
    perform pgflow._assert_slug('flow', v_slug);
    perform pgflow._lock_definitions();
    perform pgflow._assert_flow_slug_is_free(v_slug);
    select f.* into v_flow from pgflow.flows f where f.flow_slug = v_slug;
    if v_flow.queue_mode = 'step' then
        raise exception 'flow "%" has a queue per step; create_flow serves flows with one queue', v_slug using
            errcode = 'PF011',
            hint = 'Its definition comes from its workers.';
    end if;
    -- Checks the length of the name.
    perform pgflow._queue_routes(v_slug, '{"steps": []}', 'flow');
    perform pgflow._assert_queues(v_slug, v_queues, owned => v_flow.flow_slug is not null);
    if v_flow.flow_slug is null then
        perform pgflow._assert_options('flow ' || v_slug, max_attempts, base_delay, timeout, null, max_delay, give_up_after);
        perform pgflow._create_queues(v_slug, v_queues);
        insert into pgflow.flows (flow_slug, opt_max_attempts, opt_base_delay, opt_timeout, opt_max_delay, opt_give_up_after)
        values (
            v_slug, coalesce(max_attempts, 3), coalesce(base_delay, 5), coalesce(timeout, 60), coalesce(max_delay, 3600),
            coalesce(give_up_after, 86400)
        );
    end if;
    return query
    select f.flow_slug, f.opt_max_attempts, f.opt_base_delay, f.opt_timeout, f.created_at, f.queue_mode from pgflow.flows f where f.flow_slug = v_slug;
end
$$;
