-- Defines a plain flow and creates its queue; the same slug again returns the flow as it is stored, options included.
-- Raises PF004 (slug or option), PF006 (queue collision), PF010 (slug too long for a queue name).
-- Locks: definitions. Callers: ensure_flow_compiled, SQL users.
create or replace function pgflow.create_flow(
    flow_slug text,
    max_attempts int default null,
    base_delay int default null,
    timeout int default null
) returns setof pgflow.flows
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    v_slug text := create_flow.flow_slug;
    v_twin text;
    v_exists boolean;
begin
    perform pgflow._assert_slug('flow', v_slug);
    perform pgflow._lock_definitions();

    select f.flow_slug into v_twin from pgflow.flows f where lower(f.flow_slug) = lower(v_slug) and f.flow_slug <> v_slug;
    if found then
        raise exception 'flow "%" differs from flow "%" only in case', v_slug, v_twin using
            errcode = 'PF006',
            hint = 'Queue names ignore case, so both would share a queue. Choose another slug.';
    end if;

    v_exists := exists (select from pgflow.flows f where f.flow_slug = v_slug);
    perform pgflow._claim_queue_name(v_slug, lower(v_slug), owned => v_exists);
    if not v_exists then
        perform pgflow._assert_options('flow ' || v_slug, max_attempts, base_delay, timeout, null);
        insert into pgflow.flows (flow_slug, opt_max_attempts, opt_base_delay, opt_timeout)
        values (v_slug, coalesce(max_attempts, 3), coalesce(base_delay, 5), coalesce(timeout, 60));
    end if;
    return query select * from pgflow.flows f where f.flow_slug = v_slug;
end
$$;
