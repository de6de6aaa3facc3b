-- Recovery follows heartbeats: a task waits for its timeout only while its worker lives.

-- A busy database must not queue up behind this: give up, change nothing, and let the operator
-- choose a quieter moment.
set local lock_timeout = '10s';

alter table pgflow.installation
    -- The silence after which a worker's tasks are given to others.
    add column lost_after interval not null default '30 seconds',
    add constraint lost_after_is_bounded check (lost_after between interval '15 seconds' and interval '1 day');

alter table pgflow.workers
    -- The start of the present unbroken series of heartbeats. A silence of half of lost_after breaks it.
    add column heard_since timestamptz not null default now(),
    -- When recovery took the worker for dead. Its next heartbeat clears it.
    add column lost_at timestamptz;

-- When the worker last reported that the attempt still runs although its timeout has passed: its
-- handler blocks a thread, so the worker can't drop it.
alter table pgflow.step_tasks add column still_running_at timestamptz;

-- Where a worker runs.
alter table pgflow.workers
    -- The process, as its own machine calls it. NULL: a worker of an older release.
    add column host text,
    add column pid bigint;

-- The worker takes a flow's input once for each run of a claim, instead of with each task.
alter table pgflow.workers add column flow_input_once boolean not null default false;
