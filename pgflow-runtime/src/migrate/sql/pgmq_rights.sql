-- The statements that give the owner of schema pgflow, with whose rights all of pgflow's functions
-- run, what it needs of PGMQ and lacks. Before the first migration that is the connected role.
with owner as (
    select coalesce(
        (select space.nspowner from pg_catalog.pg_namespace space where space.nspname = 'pgflow'),
        (select role.oid from pg_catalog.pg_roles role where role.rolname = current_user)
    ) as role
)
select pg_catalog.format('grant %s to %I', missing.right_, pg_catalog.pg_get_userbyid(owner.role)) as grant
from owner
cross join lateral (
    select 1 as kind, 'usage on schema pgmq' as right_
    from pg_catalog.pg_namespace space
    where space.nspname = 'pgmq' and not pg_catalog.has_schema_privilege(owner.role, space.oid, 'usage')
    union all
    -- Queues are tables that their creator owns.
    select 1, 'create on schema pgmq'
    from pg_catalog.pg_namespace space
    where space.nspname = 'pgmq' and not pg_catalog.has_schema_privilege(owner.role, space.oid, 'create')
    union all
    -- Creating and dropping a queue writes a row to each of those that the version has.
    select 2, 'select, insert, update, delete on table pgmq.' || pg_catalog.quote_ident(relation.relname)
    from pg_catalog.pg_class relation
    join pg_catalog.pg_namespace space on space.oid = relation.relnamespace
    where space.nspname = 'pgmq' and relation.relname in ('meta', 'notify_insert_throttle', 'topic_bindings')
        and relation.relkind = 'r'
        and (
            select count(*)
            from pg_catalog.unnest(array['select', 'insert', 'update', 'delete']) wanted (name)
            where pg_catalog.has_table_privilege(owner.role, relation.oid, wanted.name)
        ) < 4
    union all
    -- Those that pgflow calls call others.
    select 3, 'execute on all functions in schema pgmq'
    where exists (
        select from pg_catalog.pg_proc function
        join pg_catalog.pg_namespace space on space.oid = function.pronamespace
        where space.nspname = 'pgmq' and function.proname = any ($1)
            and not pg_catalog.has_function_privilege(owner.role, function.oid, 'execute')
    )
) missing
order by missing.kind, missing.right_ desc
