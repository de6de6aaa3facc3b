-- pgflow {release}, up to migration {latest}. Written by `pgflow migrate --print`.
--
-- One transaction, which applies what is missing and may be applied again; PGMQ has to be there. The short one before it
-- changes no table.
-- For example: psql --set ON_ERROR_STOP=1 --file pgflow.sql

begin;
{name_columns}
commit;

begin transaction isolation level read committed, read write;

{settings}
set local lock_timeout = '{lock_wait} s';
do $$
begin
    perform pg_catalog.pg_advisory_xact_lock({lock_key});
end
$$;
set local lock_timeout = '{table_lock_wait} s';

do $check$
declare
    v_missing text;
    v_foreign text;
begin
    if current_setting('server_version_num')::int < {oldest_server} then
        raise exception 'the server runs Postgres %; expected Postgres 14 or newer', current_setting('server_version')
            using hint = 'Upgrade the server.';
    end if;

    select pg_catalog.string_agg(
        pg_catalog.format('pgmq.%s(%s)', required.name, pg_catalog.array_to_string(required.arguments, ', ')), ', '
    )
    into v_missing
    from (
        values
            {required}
    ) required (name, arguments)
    where not exists (
        select from (
            {pgmq_functions}
        ) candidate
        where candidate.name = required.name
            and pg_catalog.cardinality(required.arguments)
                between pg_catalog.cardinality(candidate.arguments) - candidate.defaults
                and pg_catalog.cardinality(candidate.arguments)
            and candidate.arguments[1:pg_catalog.cardinality(required.arguments)] = required.arguments
    );
    if v_missing is not null then
        raise exception 'PGMQ is not there or incomplete: % missing; expected PGMQ 1.5 or newer', v_missing
            using hint = 'Run `create extension pgmq`, or install its SQL, and apply this script again.';
    end if;

    select state.foreign_object into v_foreign
    from (
        {schema_state}
    ) state
    where not state.recorded;
    if v_foreign is not null then
        raise exception 'schema pgflow was not installed by this project (it holds % and no schema_migrations)', v_foreign
            using hint = 'Use another database, or rename that schema.';
    end if;
end
$check$;

{bookkeeping}
