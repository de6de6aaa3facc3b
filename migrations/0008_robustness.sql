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

-- Attempts that still run although their timeouts have passed: their handlers block a thread, so their
-- workers can't drop them. Few, if any; a row goes some time after its last report. No column of
-- step_tasks: a call in flight while this is applied would fail.
create table pgflow.overdue_attempts (
    run_id uuid,
    step_slug text,
    task_index int,
    reported_at timestamptz not null,
    primary key (run_id, step_slug, task_index)
);

-- Where a worker runs.
alter table pgflow.workers
    -- The process, as its own machine calls it. NULL: a worker of an older release.
    add column host text,
    add column pid bigint;

-- The worker takes a flow's input once for each run of a claim, instead of with each task.
alter table pgflow.workers add column flow_input_once boolean not null default false;

------------------------------------------------------------------------------------------------------------------------
-- Results of public functions: types of their own
------------------------------------------------------------------------------------------------------------------------

-- A function that returns the rows of a table fails in sessions that have called it before, once the table gets a column; and a prepared
-- `select *` of it fails because its result has changed. These types never change.
create type pgflow.run_record as (
    run_id uuid, flow_slug text, status text, input jsonb, output jsonb, error_message text, remaining_steps int,
    started_at timestamptz, completed_at timestamptz, failed_at timestamptz
);
create type pgflow.flow_record as (
    flow_slug text, opt_max_attempts int, opt_base_delay int, opt_timeout int, created_at timestamptz, queue_mode text
);
create type pgflow.step_record as (
    flow_slug text, step_slug text, step_type text, step_index int, deps_count int,
    opt_max_attempts int, opt_base_delay int, opt_timeout int, opt_start_delay int,
    required_input_pattern jsonb, forbidden_input_pattern jsonb, when_unmet text, when_exhausted text,
    feeds_map boolean, created_at timestamptz, queue_name text
);
create type pgflow.task_record as (
    flow_slug text, run_id uuid, step_slug text, task_index int, message_id bigint, status text, attempts_count int,
    input jsonb, output jsonb, error_message text, queued_at timestamptz, started_at timestamptz, completed_at timestamptz, failed_at timestamptz,
    last_worker_id uuid, requeued_count int, last_requeued_at timestamptz, permanently_stalled_at timestamptz, queue_name text, retry_delay int
);
create type pgflow.worker_function_record as (
    function_name text, start_mode text, enabled boolean, disabled_at timestamptz, disabled_reason text, debounce interval,
    last_invoked_at timestamptz, created_at timestamptz, updated_at timestamptz, fenced_at timestamptz,
    recorded_enabled boolean, recorded_disabled_at timestamptz, recorded_disabled_reason text, http_url text
);
-- Renamed and not dropped: calls that have been planned go on by the old functions. The next numbered file may drop those of `_at_level_7`.
do $$
declare
    v_old regprocedure;
    v_name text;
begin
    foreach v_old in array array_remove(array[
        to_regprocedure('pgflow.start_flow(text, jsonb, uuid)'),
        to_regprocedure('pgflow.start_flows(text, jsonb[], uuid[])'),
        to_regprocedure('pgflow.create_flow(text, int, int, int)'),
        to_regprocedure('pgflow.add_step(text, text, text[], int, int, int, int, text, jsonb, jsonb, text, text)'),
        to_regprocedure('pgflow.complete_task(uuid, text, int, jsonb, int)'),
        to_regprocedure('pgflow.fail_task(uuid, text, int, text, numeric, int, boolean)'),
        to_regprocedure('pgflow.disable_worker_function(text, text)'),
        to_regprocedure('pgflow.enable_worker_function(text)'),
        to_regprocedure('pgflow.fence_worker_functions(text[], text)'),
        to_regprocedure('pgflow.unfence_worker_functions(text[])')
    ], null) loop
        select p.proname into strict v_name from pg_proc p where p.oid = v_old;
        execute format('alter function %s rename to %I', v_old, '_' || v_name || '_at_level_7');
        -- Bodies qualify their parameters with the function's name.
        execute regexp_replace(pg_get_functiondef(v_old), '\m' || v_name || '\.', '_' || v_name || '_at_level_7.', 'g');
    end loop;
end
$$;

------------------------------------------------------------------------------------------------------------------------
-- Deletion of a flow in batches
------------------------------------------------------------------------------------------------------------------------

-- Flows of which nothing starts any more, because delete_flow_batch takes their runs away. No columns of flows: a call of create_flow that is in flight
-- while this is applied would fail.
create table pgflow.flow_deletions (
    flow_slug text primary key,
    started_at timestamptz not null default clock_timestamp(),
    -- The last run that was removed.
    last_run_id uuid
);

------------------------------------------------------------------------------------------------------------------------
-- Wake-ups of transactions that last
------------------------------------------------------------------------------------------------------------------------

-- The trigger needs it; its text of today stands in functions/.
create function pgflow._wake_late() returns trigger
language plpgsql
as $$
begin
    return null;
end
$$;
-- Queues that were notified just before work was sent to them, by a transaction that has not ended. No row is ever committed.
create unlogged table pgflow.late_wakeups (
    queue_name text not null
)
with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
create constraint trigger late_wakeups_at_commit
    after insert on pgflow.late_wakeups
    deferrable initially deferred
    for each row execute function pgflow._wake_late();

-- Options that differ between code and database are reported once.

-- The differences between the options of a flow's code and those in the database that a worker has warned of. Another worker
-- warns only when they have changed since.
create table pgflow.option_notices (
    flow_slug text primary key references pgflow.flows (flow_slug) on delete cascade,
    differences text[] not null,
    noted_at timestamptz not null default now()
);
