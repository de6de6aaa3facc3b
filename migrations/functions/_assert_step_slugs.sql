-- Raises PF004 unless every step of the shape has a valid slug, and one of its own, whatever the
-- case. Before any queue name is derived from them: a wrong slug would show as a wrong name.
-- Locks: none. Callers: ensure_flow_compiled.
create or replace function pgflow._assert_step_slugs(flow_slug text, shape jsonb) returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
    v_slugs text[] := array(select e ->> 'slug' from jsonb_array_elements(shape -> 'steps') with ordinality as x (e, n) order by n);
    v_slug text;
    v_twin text;
begin
    foreach v_slug in array v_slugs loop
        perform pgflow._assert_slug('step', v_slug);
    end loop;
    select a.slug, b.slug into v_twin, v_slug
    from unnest(v_slugs) with ordinality as a (slug, n)
    join unnest(v_slugs) with ordinality as b (slug, n) on lower(a.slug collate "C") = lower(b.slug collate "C") and a.n < b.n
    order by b.n, a.n
    limit 1;
    if not found then
        return;
    elsif v_slug = v_twin then
        raise exception 'flow "%" has two steps "%"', flow_slug, v_slug using
            errcode = 'PF004',
            hint = 'Give each step a slug of its own.';
    end if;
    raise exception 'step "%" differs from step "%" only in case', v_slug, v_twin using
        errcode = 'PF004',
        hint = 'Queue names ignore case. Choose another slug.';
end
$$;
