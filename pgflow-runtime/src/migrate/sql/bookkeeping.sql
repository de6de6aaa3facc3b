do $$
begin
    -- "if not exists" would need a privilege that a role with a schema made for it may lack.
    if pg_catalog.to_regnamespace('pgflow') is null then
        create schema pgflow;
    end if;
end
$$;

create table if not exists pgflow.schema_migrations (
    version int primary key,
    name text not null,
    digest text not null,
    applied_at timestamptz not null default now()
);
comment on table pgflow.schema_migrations is 'The numbered migrations that were applied; written by pgflow migrate';

create table if not exists pgflow.schema_functions (
    name text primary key,
    signature text not null,
    digest text not null,
    applied_at timestamptz not null default now()
);
comment on table pgflow.schema_functions is 'The functions of pgflow as last applied; written by pgflow migrate';
