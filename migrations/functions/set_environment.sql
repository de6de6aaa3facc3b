-- Says what this database is used for: 'production' (never changes a stored definition) or 'local'
-- (a developer's own). Raises PF009.
-- Locks: the installation row. Callers: the development database, operators.
create or replace function pgflow.set_environment(environment text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    if environment is null or environment not in ('production', 'local') then
        raise exception 'environment "%" is unknown; it is "production" or "local"', environment using
            errcode = 'PF009',
            hint = '"local" is for a database of a developer''s own, "production" for every other.';
    end if;
    update pgflow.installation i set environment = set_environment.environment where i.environment <> set_environment.environment;
end
$$;
