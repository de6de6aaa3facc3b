select
    schema.oid is not null as schema_exists,
    exists (
        select from pg_catalog.pg_class
        where relnamespace = schema.oid and relname = 'schema_migrations'
    ) as recorded,
    coalesce(
        (
            select 'relation ' || min(relname::text)
            from pg_catalog.pg_class where relnamespace = schema.oid
        ),
        (
            select 'function ' || min(proname::text)
            from pg_catalog.pg_proc where pronamespace = schema.oid
        )
    ) as foreign_object
from (select 1) one
left join pg_catalog.pg_namespace schema on schema.nspname = 'pgflow'
