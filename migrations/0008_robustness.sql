-- The life of workers: when one is taken for dead, and where it runs.

-- A busy database must not queue up behind this: give up, change nothing, and let the operator
-- choose a quieter moment.
set local lock_timeout = '10s';

alter table pgflow.installation
    -- A worker whose last heartbeat is older is dead: its started tasks are given to others.
    add column lost_after interval not null default '30 seconds';

alter table pgflow.workers
    -- The process, as its own machine calls it. NULL: a worker of an older release.
    add column host text,
    add column pid bigint;
