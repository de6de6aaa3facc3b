-- The plain core: definitions, runs, workers. One queue per flow, named like the flow.
--
-- Definition: flows, steps, deps.  Runtime: runs, step_states, step_tasks.  Workers: workers, worker_functions.
-- Rows are written by the functions in functions/ only; anyone may read them.

-- The migrator has made the schema: its bookkeeping lives there too.
revoke all on schema pgflow from public;

-- One row: what this database is used for.
create table pgflow.installation (
    singleton boolean primary key default true,
    environment text not null default 'production',
    protocol_version int not null default 1,
    event_level text not null default 'runs',
    created_at timestamptz not null default now(),
    constraint installation_is_single check (singleton),
    constraint environment_is_valid check (environment in ('production', 'local')),
    constraint event_level_is_valid check (event_level in ('off', 'runs', 'all'))
);
insert into pgflow.installation default values;

------------------------------------------------------------------------------------------------------------------------
-- Definition
------------------------------------------------------------------------------------------------------------------------

create table pgflow.flows (
    flow_slug text primary key,
    opt_max_attempts int not null default 3,
    opt_base_delay int not null default 5,
    opt_timeout int not null default 60,
    created_at timestamptz not null default now(),
    constraint slug_is_valid check (flow_slug ~ '^[A-Za-z_][A-Za-z0-9_]*$' and length(flow_slug) <= 128 and flow_slug <> 'run'),
    constraint opt_max_attempts_is_positive check (opt_max_attempts >= 1),
    constraint opt_base_delay_is_nonnegative check (opt_base_delay >= 0),
    constraint opt_timeout_is_positive check (opt_timeout > 0)
);

create table pgflow.steps (
    flow_slug text not null references pgflow.flows (flow_slug),
    step_slug text not null,
    step_type text not null default 'single',
    step_index int not null,
    deps_count int not null default 0,
    -- NULL: the flow's value. A NULL start delay is none.
    opt_max_attempts int,
    opt_base_delay int,
    opt_timeout int,
    opt_start_delay int,
    required_input_pattern jsonb,
    forbidden_input_pattern jsonb,
    when_unmet text not null default 'skip',
    when_exhausted text not null default 'fail',
    -- Whether a map step depends on this one: its output must be an array then.
    feeds_map boolean not null default false,
    created_at timestamptz not null default now(),
    primary key (flow_slug, step_slug),
    constraint steps_flow_slug_step_index_key unique (flow_slug, step_index),
    constraint steps_step_slug_check check (step_slug ~ '^[A-Za-z_][A-Za-z0-9_]*$' and length(step_slug) <= 128 and step_slug <> 'run'),
    constraint steps_step_type_check check (step_type in ('single', 'map')),
    constraint step_index_is_nonnegative check (step_index >= 0),
    constraint deps_count_is_nonnegative check (deps_count >= 0),
    constraint map_has_at_most_one_dependency check (step_type = 'single' or deps_count <= 1),
    constraint opt_max_attempts_is_positive check (opt_max_attempts >= 1),
    constraint opt_base_delay_is_nonnegative check (opt_base_delay >= 0),
    constraint opt_timeout_is_positive check (opt_timeout > 0),
    constraint opt_start_delay_is_nonnegative check (opt_start_delay >= 0),
    constraint required_input_pattern_is_object check (jsonb_typeof(required_input_pattern) = 'object'),
    constraint forbidden_input_pattern_is_object check (jsonb_typeof(forbidden_input_pattern) = 'object'),
    constraint root_map_has_no_condition check (
        step_type = 'single' or deps_count > 0 or (required_input_pattern is null and forbidden_input_pattern is null)
    ),
    constraint when_unmet_is_valid check (when_unmet in ('fail', 'skip', 'skip-cascade')),
    constraint when_exhausted_is_valid check (when_exhausted in ('fail', 'skip', 'skip-cascade'))
);

create table pgflow.deps (
    flow_slug text not null references pgflow.flows (flow_slug),
    dep_slug text not null,
    step_slug text not null,
    created_at timestamptz not null default now(),
    primary key (flow_slug, dep_slug, step_slug),
    foreign key (flow_slug, dep_slug) references pgflow.steps (flow_slug, step_slug),
    foreign key (flow_slug, step_slug) references pgflow.steps (flow_slug, step_slug),
    constraint deps_check check (dep_slug <> step_slug)
);
-- What a step waits for: the input of a task, the subject of a condition, the source of a map.
create index idx_deps_by_flow_step on pgflow.deps (flow_slug, step_slug);

------------------------------------------------------------------------------------------------------------------------
-- Runtime. These tables are hot: their rows change a few times soon after they are written, and hardly ever later.
------------------------------------------------------------------------------------------------------------------------

create table pgflow.runs (
    run_id uuid primary key default gen_random_uuid(),
    flow_slug text not null references pgflow.flows (flow_slug),
    status text not null default 'started',
    input jsonb not null,
    output jsonb,
    error_message text,
    remaining_steps int not null default 0,
    started_at timestamptz not null default now(),
    completed_at timestamptz,
    failed_at timestamptz,
    constraint status_is_valid check (status in ('started', 'completed', 'failed')),
    constraint remaining_steps_is_nonnegative check (remaining_steps >= 0),
    constraint status_matches_timestamps check (
        (status = 'completed') = (completed_at is not null) and (status = 'failed') = (failed_at is not null)
    ),
    constraint completed_at_is_after_started_at check (completed_at >= started_at),
    constraint failed_at_is_after_started_at check (failed_at >= started_at)
)
-- Each completed step counts remaining_steps down: leave room for those versions on the same page.
with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.05);
-- The newest runs first, as people list them.
create index idx_runs_started_at on pgflow.runs (started_at);
-- What retention removes: ended runs, oldest first.
create index idx_runs_ended_at on pgflow.runs (coalesce(completed_at, failed_at)) where status <> 'started';

create table pgflow.step_states (
    flow_slug text not null,
    run_id uuid not null references pgflow.runs (run_id),
    step_slug text not null,
    status text not null default 'created',
    -- How many tasks the step has; NULL while the source of a map is not complete.
    initial_tasks int,
    -- Tasks that are not completed; NULL before the step starts and when it is skipped.
    remaining_tasks int,
    -- Dependencies that are neither completed nor skipped.
    remaining_deps int not null default 0,
    output jsonb,
    error_message text,
    skip_reason text,
    created_at timestamptz not null default now(),
    started_at timestamptz,
    completed_at timestamptz,
    failed_at timestamptz,
    skipped_at timestamptz,
    primary key (run_id, step_slug),
    constraint status_is_valid check (status in ('created', 'started', 'completed', 'failed', 'skipped')),
    constraint initial_tasks_is_nonnegative check (initial_tasks >= 0),
    constraint initial_tasks_known_when_started check (status <> 'started' or initial_tasks is not null),
    constraint remaining_tasks_is_nonnegative check (remaining_tasks >= 0),
    constraint remaining_tasks_state_consistency check (remaining_tasks is null or status not in ('created', 'skipped')),
    constraint status_and_remaining_tasks_match check (status <> 'completed' or remaining_tasks = 0),
    constraint remaining_deps_is_nonnegative check (remaining_deps >= 0),
    constraint output_only_for_completed check (output is null or status = 'completed'),
    constraint skip_reason_matches_status check ((status = 'skipped') = (skip_reason is not null)),
    constraint skip_reason_is_valid check (skip_reason in ('condition_unmet', 'handler_failed', 'dependency_skipped')),
    constraint status_matches_timestamps check (
        (status = 'completed') = (completed_at is not null)
        and (status = 'failed') = (failed_at is not null)
        and (status = 'skipped') = (skipped_at is not null)
    ),
    constraint started_at_is_after_created_at check (started_at >= created_at),
    constraint completed_at_is_after_started_at check (completed_at >= started_at),
    constraint failed_at_is_after_started_at check (failed_at >= coalesce(started_at, created_at)),
    constraint skipped_at_is_after_created_at check (skipped_at >= created_at)
)
-- A map step's row is counted down once per batch of its tasks: HOT updates need free space beside it.
with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.05);

create table pgflow.step_tasks (
    flow_slug text not null,
    run_id uuid not null,
    step_slug text not null,
    task_index int not null default 0,
    message_id bigint,
    status text not null default 'queued',
    attempts_count int not null default 0,
    -- A map step's element, taken out of the list once, when the step starts: no claim reads the whole list.
    input jsonb,
    output jsonb,
    error_message text,
    queued_at timestamptz not null default now(),
    started_at timestamptz,
    completed_at timestamptz,
    failed_at timestamptz,
    -- No foreign key: it would lock the worker's row once per claimed task and make removing old workers scan all tasks.
    last_worker_id uuid,
    requeued_count int not null default 0,
    last_requeued_at timestamptz,
    permanently_stalled_at timestamptz,
    primary key (run_id, step_slug, task_index),
    foreign key (run_id, step_slug) references pgflow.step_states (run_id, step_slug),
    constraint status_is_valid check (status in ('queued', 'started', 'completed', 'failed', 'skipped', 'cancelled')),
    constraint task_index_is_nonnegative check (task_index >= 0),
    constraint attempts_count_is_nonnegative check (attempts_count >= 0),
    constraint requeued_count_is_nonnegative check (requeued_count >= 0),
    constraint output_valid_only_for_completed check (output is null or status in ('completed', 'failed')),
    constraint started_needs_started_at check (status <> 'started' or started_at is not null),
    constraint status_matches_timestamps check (
        (status = 'completed') = (completed_at is not null) and (status = 'failed') = (failed_at is not null)
    ),
    constraint started_at_is_after_queued_at check (started_at >= queued_at),
    constraint completed_at_is_after_started_at check (completed_at >= started_at),
    constraint failed_at_is_after_queued_at check (failed_at >= queued_at)
)
-- Each task changes at least twice: claimed, then ended.
with (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.05);
-- From a message to its task.
create index idx_step_tasks_message_id on pgflow.step_tasks (message_id);
-- Recovery: started tasks, oldest first. Holds only what is running now, however many tasks have ended.
create index idx_step_tasks_started on pgflow.step_tasks (started_at) where status = 'started';

------------------------------------------------------------------------------------------------------------------------
-- Workers
------------------------------------------------------------------------------------------------------------------------

-- A worker function is what gets deployed and restarted; workers are its running processes.
create table pgflow.worker_functions (
    function_name text primary key,
    start_mode text not null default 'process',
    enabled boolean not null default true,
    disabled_at timestamptz,
    disabled_reason text,
    debounce interval not null default interval '6 seconds',
    last_invoked_at timestamptz,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    constraint start_mode_is_valid check (start_mode in ('process', 'http')),
    constraint debounce_is_positive check (debounce > interval '0'),
    constraint disabled_has_a_time check (enabled or disabled_at is not null)
);

create table pgflow.workers (
    worker_id uuid primary key,
    function_name text not null,
    queue_name text not null,
    flow_slug text not null,
    -- NULL: a worker of the flow's one queue.
    step_slug text,
    -- Steps whose handlers also take the flow's input: only they get it with a claim.
    flow_input_steps text[] not null default '{}',
    started_at timestamptz not null default now(),
    last_heartbeat_at timestamptz not null default now(),
    deprecated_at timestamptz,
    stopped_at timestamptz
);
-- The workers of one function, newest first.
create index idx_workers_function_name on pgflow.workers (function_name, started_at);

-- What a claimed task is to a worker that reads its queue by itself.
create type pgflow.step_task_record as (
    flow_slug text,
    run_id uuid,
    step_slug text,
    input jsonb,
    msg_id bigint,
    task_index int,
    flow_input jsonb,
    attempt int,
    max_attempts int,
    timeout int
);
