-- Returns whether a flow or step may carry this slug: 1 to 128 ASCII letters, digits and `_`, a
-- letter first, no `_` last, no `__`, not `run`.
-- Locks: none. Callers: _assert_slug, anyone.
create or replace function pgflow.is_valid_slug(slug text) returns boolean
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
    select coalesce(
        slug ~ '^[A-Za-z]([A-Za-z0-9_]*[A-Za-z0-9])?$' and slug !~ '__' and length(slug) <= 128 and slug <> 'run',
        false
    )
$$;
