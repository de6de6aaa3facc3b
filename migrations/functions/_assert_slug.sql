-- Raises PF004 unless the slug is valid; `what` is 'flow' or 'step'.
-- Locks: none. Callers: create_flow, add_step, ensure_flow_compiled, _assert_step_slugs.
create or replace function pgflow._assert_slug(what text, slug text) returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
    if not pgflow.is_valid_slug(slug) then
        raise exception '% slug "%" is not valid', what, left(coalesce(slug, 'NULL'), 60) using
            errcode = 'PF004',
            hint = 'Use 1 to 128 ASCII letters, digits and "_": a letter first, a letter or digit last, no "__", and not the word "run".';
    end if;
end
$$;
