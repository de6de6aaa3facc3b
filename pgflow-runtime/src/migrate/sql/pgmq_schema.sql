select
    (select extversion from pg_catalog.pg_extension where extname = 'pgmq') as extension_version,
    exists (
        select from pg_catalog.pg_class
        where relnamespace = schema.oid and relname = 'meta' and relkind in ('r', 'v')
    ) as has_meta,
    coalesce((
        select
            pg_catalog.has_schema_privilege(schema.oid, 'usage')
            and pg_catalog.has_table_privilege(tracking.oid, 'select')
        from pg_catalog.pg_class tracking
        where tracking.relnamespace = schema.oid and tracking.relname = '__pgmq_migrations'
    ), false) as tracked
from (select 1) one
left join pg_catalog.pg_namespace schema on schema.nspname = 'pgmq'
