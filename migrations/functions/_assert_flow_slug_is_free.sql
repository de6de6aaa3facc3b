-- Raises PF006 when another flow's slug differs from this one only in case: their queues would be
-- one.
-- Locks: needs the definition lock. Callers: create_flow, _define_flow.
create or replace function pgflow._assert_flow_slug_is_free(flow_slug text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    v_twin text;
begin
    select f.flow_slug into v_twin
    from pgflow.flows f
    where lower(f.flow_slug collate "C") = lower(_assert_flow_slug_is_free.flow_slug collate "C") and f.flow_slug <> _assert_flow_slug_is_free.flow_slug;
    if found then
        raise exception 'flow "%" differs from flow "%" only in case', _assert_flow_slug_is_free.flow_slug, v_twin using
            errcode = 'PF006',
            hint = 'Queue names ignore case, so both would share a queue. Choose another slug.';
    end if;
end
$$;
