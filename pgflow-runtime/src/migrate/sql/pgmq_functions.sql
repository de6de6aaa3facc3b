select
    function.proname::text as name,
    array(
        select pg_catalog.format_type(argument.type, null)
        from pg_catalog.unnest(function.proargtypes) with ordinality argument (type, position)
        order by argument.position
    ) as arguments,
    function.pronargdefaults as defaults
from pg_catalog.pg_proc function
join pg_catalog.pg_namespace schema on schema.oid = function.pronamespace
where schema.nspname = 'pgmq'
