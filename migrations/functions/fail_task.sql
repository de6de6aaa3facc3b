-- An attempt failed. With attempts left (and `retryable`) the task is queued again after a delay: `retry_delay` seconds when
-- given, else base_delay * 2^attempts. Otherwise, or when its message is gone and no worker could see a retry, its step's when_exhausted
-- decides. Returns the task's row as it is now; it shows the delay.
-- A late report (the run, step or task is no longer started, or another attempt is the current one) changes nothing.
-- Raises PF003 (unknown task), PF009 (a retry_delay that is negative, not finite or too long).
-- Locks: run, step state, task, queue row. Callers: workers, SQL users.
create or replace function pgflow.fail_task(
    run_id uuid,
    step_slug text,
    task_index int,
    error_message text,
    retry_delay numeric default null,
    attempt int default null,
    retryable boolean default true
) returns setof pgflow.task_record
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
#variable_conflict use_column
declare
    v_run_id uuid := fail_task.run_id;
    v_slug text := fail_task.step_slug;
    v_index int := fail_task.task_index;
    v_run_status text;
    v_step_status text;
    v_task pgflow.step_tasks;
    v_max_attempts int;
    v_base_delay int;
    v_delay int;
    v_is_retried boolean := false;
    v_count int;
begin
    -- Infinity and NaN are above every bound.
    if fail_task.retry_delay < 0 or fail_task.retry_delay > 2147483647 then
        raise exception 'retry_delay is % seconds; it must be between 0 and 2147483647', fail_task.retry_delay using
            errcode = 'PF009',
            hint = 'Leave it out for the step''s own backoff.';
    end if;

    select r.status into v_run_status from pgflow.runs r where r.run_id = v_run_id for no key update;
    select s.status into v_step_status from pgflow.step_states s where s.run_id = v_run_id and s.step_slug = v_slug for no key update;
    select t.* into v_task
    from pgflow.step_tasks t
    where t.run_id = v_run_id and t.step_slug = v_slug and t.task_index = v_index
    for no key update;
    if not found then
        raise exception 'there is no task "%" [%] in run %', v_slug, v_index, v_run_id using
            errcode = 'PF003',
            hint = 'Its run may have been deleted.';
    end if;

    if v_run_status <> 'started' or v_step_status <> 'started' or v_task.status <> 'started'
        or fail_task.attempt <> v_task.attempts_count
    then
        if v_task.status not in ('queued', 'started') and v_task.message_id is not null then
            perform pgflow._archive_messages(array[v_task.queue_name], array[v_task.message_id]);
        end if;
        return query
        select
            t.flow_slug, t.run_id, t.step_slug, t.task_index, t.message_id, t.status, t.attempts_count, t.input, t.output, t.error_message, t.queued_at,
            t.started_at, t.completed_at, t.failed_at, t.last_worker_id, t.requeued_count, t.last_requeued_at, t.permanently_stalled_at, t.queue_name,
            t.retry_delay
        from (select v_task.*) t;
        return;
    end if;

    select o.max_attempts, o.base_delay into strict v_max_attempts, v_base_delay
    from pgflow.step_options o
    where o.flow_slug = v_task.flow_slug and o.step_slug = v_slug;

    if coalesce(retryable, true) and v_task.attempts_count < v_max_attempts then
        v_delay := coalesce(ceil(fail_task.retry_delay)::int, pgflow._retry_delay(v_base_delay, v_task.attempts_count));
        select count(*) into v_count from pgflow.set_vt_batch(v_task.queue_name, array[v_task.message_id], array[v_delay]);
        v_is_retried := v_count = 1;
    end if;
    if v_is_retried then
        update pgflow.step_tasks t
        set status = 'queued', started_at = null, error_message = fail_task.error_message, retry_delay = v_delay
        where t.run_id = v_run_id and t.step_slug = v_slug and t.task_index = v_index;
    else
        perform pgflow._exhaust_task(
            v_run_id, v_slug, v_index,
            coalesce(fail_task.error_message, 'failed without a message')
                || case when v_count = 0 then format(' (not retried: its message is gone from queue "%s")', v_task.queue_name) else '' end
        );
    end if;

    return query
    select
        t.flow_slug, t.run_id, t.step_slug, t.task_index, t.message_id, t.status, t.attempts_count, t.input, t.output, t.error_message, t.queued_at,
        t.started_at, t.completed_at, t.failed_at, t.last_worker_id, t.requeued_count, t.last_requeued_at, t.permanently_stalled_at, t.queue_name,
        t.retry_delay
    from pgflow.step_tasks t
    where t.run_id = v_run_id and t.step_slug = v_slug and t.task_index = v_index;
end
$$;
