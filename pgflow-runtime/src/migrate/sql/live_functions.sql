select function.proname::text as name, function.oid::pg_catalog.regprocedure::text as signature
from pg_catalog.pg_proc function
join pg_catalog.pg_namespace schema on schema.oid = function.pronamespace
where schema.nspname = 'pgflow'
order by name, signature
