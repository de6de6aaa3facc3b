-- An attempt failed. With attempts left (and `retryable`) the task is queued again after a delay:
-- `retry_delay` seconds when given, exactly, else the backoff of its step, which counts failures
-- only. Otherwise, or when its message is gone and no worker could see a retry, its step's
-- when_exhausted decides. Returns the task's row as it is now; it shows the delay, in whole
-- seconds. A late report (the run, step or task is no longer started, or another attempt is the
-- current one) changes nothing. Raises PF003 (unknown task), PF009 (a retry_delay that is negative,
-- not finite or too long).
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
    v_task record;
    v_failures int;
    v_delay interval;
    v_is_retried boolean;
begin
    -- Infinity and NaN are above every bound.
    if fail_task.retry_delay < 0 or fail_task.retry_delay > 2147483647 then
        raise exception 'retry_delay is % seconds; it must be between 0 and 2147483647', fail_task.retry_delay using
            errcode = 'PF009',
            hint = 'Leave it out for the step''s own backoff.';
    end if;

    if pgflow._lock_attempt(v_run_id, v_slug, v_index, fail_task.attempt) then
        select
            t.queue_name, t.message_id, t.attempts_count, t.uncounted_attempts, t.postponed_count, o.max_attempts, o.base_delay, o.max_delay
        into strict v_task
        from pgflow.step_tasks t
        join pgflow.step_options o on o.flow_slug = t.flow_slug and o.step_slug = t.step_slug
        where t.run_id = v_run_id and t.step_slug = v_slug and t.task_index = v_index;
        v_failures := v_task.attempts_count - v_task.uncounted_attempts;

        if coalesce(retryable, true) and v_failures < v_task.max_attempts then
            v_delay := coalesce(
                make_interval(secs => fail_task.retry_delay::float8),
                pgflow._backoff(v_task.base_delay, v_failures, v_task.max_delay)
            );
            v_is_retried := pgflow._hide_message(v_task.queue_name, v_task.message_id, v_delay);
        end if;
        if v_is_retried then
            update pgflow.step_tasks t
            set
                status = 'queued', started_at = null, error_message = fail_task.error_message,
                retry_delay = round(extract(epoch from v_delay))::int,
                postponed_count = 0, postponed_since = null
            where t.run_id = v_run_id and t.step_slug = v_slug and t.task_index = v_index;
        else
            if v_task.postponed_count > 0 then
                update pgflow.step_tasks t
                set postponed_count = 0, postponed_since = null
                where t.run_id = v_run_id and t.step_slug = v_slug and t.task_index = v_index;
            end if;
            perform pgflow._exhaust_task(
                v_run_id, v_slug, v_index,
                coalesce(fail_task.error_message, 'failed without a message') || case
                    when not v_is_retried then format(' (not retried: its message is gone from queue "%s")', v_task.queue_name)
                    else ''
                end
            );
        end if;
    end if;

    return query select r.* from pgflow._row_of_task(v_run_id, v_slug, v_index) r;
end
$$;
