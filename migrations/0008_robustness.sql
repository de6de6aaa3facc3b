-- Options that differ between code and database are reported once.

-- A busy database must not queue up behind this: give up, change nothing, and let the operator choose a quieter moment.
set local lock_timeout = '10s';

-- The differences between the options of a flow's code and those in the database that a worker has warned of. Another worker
-- warns only when they have changed since.
create table pgflow.option_notices (
    flow_slug text primary key references pgflow.flows (flow_slug) on delete cascade,
    differences text[] not null,
    noted_at timestamptz not null default now()
);
