-- The rights in schema pgflow that everybody has, each as `revoke` and `grant` write it. A function
-- without an access list may be executed by everybody: so it is created, and so it is restored from
-- a dump without rights.
select
    open.what as object,
    pg_catalog.pg_has_role(open.owner, 'usage') as is_own
from (
    select 1 as kind, 'schema pgflow' as what, space.nspowner as owner, space.nspacl as rights
    from pg_catalog.pg_namespace space
    where space.nspname = 'pgflow'
    union all
    select 2, 'table ' || relation.oid::pg_catalog.regclass::text, relation.relowner, relation.relacl
    from pg_catalog.pg_class relation
    join pg_catalog.pg_namespace space on space.oid = relation.relnamespace
    where space.nspname = 'pgflow' and relation.relkind in ('r', 'p', 'v', 'm', 'f')
    union all
    -- A right on a column is no right on its table; revoking from the table takes both.
    select 2, 'table ' || relation.oid::pg_catalog.regclass::text, relation.relowner, attribute.attacl
    from pg_catalog.pg_class relation
    join pg_catalog.pg_namespace space on space.oid = relation.relnamespace
    join pg_catalog.pg_attribute attribute on attribute.attrelid = relation.oid
    where space.nspname = 'pgflow' and relation.relkind in ('r', 'p', 'v', 'm', 'f')
        and attribute.attnum > 0 and attribute.attacl is not null
    union all
    select 3, 'sequence ' || relation.oid::pg_catalog.regclass::text, relation.relowner, relation.relacl
    from pg_catalog.pg_class relation
    join pg_catalog.pg_namespace space on space.oid = relation.relnamespace
    where space.nspname = 'pgflow' and relation.relkind = 'S'
    union all
    select
        4,
        case function.prokind when 'p' then 'procedure ' else 'function ' end || function.oid::pg_catalog.regprocedure::text,
        function.proowner,
        coalesce(function.proacl, pg_catalog.acldefault('f', function.proowner))
    from pg_catalog.pg_proc function
    join pg_catalog.pg_namespace space on space.oid = function.pronamespace
    -- Functions that somebody else has put there are open as they were made.
    where space.nspname = 'pgflow' and function.proname in (select recorded.name from pgflow.schema_functions recorded)
) open
where exists (select from pg_catalog.aclexplode(open.rights) granted where granted.grantee = 0)
group by open.kind, open.what, open.owner
order by open.kind, open.what
