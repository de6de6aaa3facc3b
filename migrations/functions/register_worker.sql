-- Registers a running worker: what it serves, which steps' handlers also take the flow's input, and
-- which build of the application it runs, if it says so. From here on it may claim. A worker that
-- can share a flow's input between tasks sets pgflow_worker.flow_input_once to 'on' for its
-- transaction before it calls; others get the input with each task, see _start_claimed. Raises
-- PF001 (a flow or function that is unknown, a flow that is being deleted), PF007 (the function is
-- disabled, or the id is taken), PF009 (no id, a queue that is not a route of the flow, or a build
-- of more than 128 characters, none, or control characters).
-- Locks: the flow (shared) and its row, so that a worker registers either before or after the flow
-- is deleted or recompiled; the function's row, so that it does either before or after the function
-- is disabled. Callers: workers at startup.
create or replace function pgflow.register_worker(
    worker_id uuid,
    function_name text,
    flow_slug text,
    step_slug text,
    queue_name text,
    flow_input_steps text[],
    build text default null
) returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    v_function pgflow.worker_functions;
    v_mode text;
    v_deletion timestamptz;
begin
    if register_worker.worker_id is null then
        raise exception 'a worker needs an id, it was given null' using errcode = 'PF009', hint = 'Pass a new uuid at each start.';
    end if;
    if length(register_worker.build) not between 1 and 128 or register_worker.build ~ '[[:cntrl:]]' then
        raise exception 'the build of a worker has % characters, or a control character among them', length(register_worker.build) using
            errcode = 'PF009',
            hint = 'Pass 1 to 128 printable characters, such as a version, or leave it out.';
    end if;
    perform pgflow._lock_flow(register_worker.flow_slug, alone => false);
    select f.queue_mode into v_mode from pgflow.flows f where f.flow_slug = register_worker.flow_slug for key share;
    select w.* into v_function from pgflow.worker_functions w where w.function_name = register_worker.function_name for share;
    if not found then
        raise exception 'worker function "%" is not tracked', register_worker.function_name using
            errcode = 'PF001',
            hint = 'Call pgflow.track_worker_function first.';
    end if;
    if not v_function.enabled then
        raise exception 'worker function "%" is disabled since %: %', v_function.function_name, v_function.disabled_at,
            coalesce(v_function.disabled_reason, 'no reason was given') using
            errcode = 'PF007',
            hint = 'Deal with the reason, then call pgflow.enable_worker_function.';
    end if;
    if v_mode is null then
        raise exception 'flow "%" is not defined in this database', register_worker.flow_slug using
            errcode = 'PF001',
            hint = 'Call pgflow.ensure_flow_compiled first.';
    end if;
    select d.started_at into v_deletion from pgflow.flow_deletions d where d.flow_slug = register_worker.flow_slug;
    perform pgflow._assert_flow_stays(register_worker.flow_slug, v_deletion);
    if (
        (v_mode = 'flow' and register_worker.step_slug is null and register_worker.queue_name = lower(register_worker.flow_slug collate "C"))
        or (v_mode = 'step' and exists (
            select from pgflow.steps s
            where s.flow_slug = register_worker.flow_slug and s.step_slug = register_worker.step_slug and s.queue_name = register_worker.queue_name
        ))
    ) is not true then
        raise exception 'queue "%" is no route of flow "%"%', register_worker.queue_name, register_worker.flow_slug,
            coalesce(', step "' || register_worker.step_slug || '"', '') using
            errcode = 'PF009',
            hint = 'The routes are in pgflow.steps; only a worker of a flow with step queues names a step.';
    end if;
    insert into pgflow.workers (worker_id, function_name, flow_slug, step_slug, queue_name, flow_input_steps, flow_input_once, build)
    values (
        register_worker.worker_id, register_worker.function_name, register_worker.flow_slug, register_worker.step_slug,
        register_worker.queue_name, coalesce(register_worker.flow_input_steps, '{}'),
        coalesce(current_setting('pgflow_worker.flow_input_once', true) = 'on', false),
        register_worker.build
    )
    on conflict (worker_id) do nothing;
    if not found then
        raise exception 'worker id % is taken', register_worker.worker_id using errcode = 'PF007', hint = 'A worker id is new at every start.';
    end if;
end
$$;
