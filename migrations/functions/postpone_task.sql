-- An attempt was refused for now, as by a rate limit: that is no failure. The attempt counts
-- neither against max_attempts nor in the backoff, and the task is queued again after `delay`
-- seconds and up to a tenth more at random. When nothing but postponements has happened to the task
-- for longer than its give_up_after, or when its message is gone, its attempts are exhausted and
-- its step's when_exhausted decides. Returns the task's row as it is now; it shows the delay, in
-- whole seconds. A late report (the run, step or task is no longer started, or another attempt is
-- the current one) changes nothing. Raises PF003 (unknown task), PF009 (a delay that is missing,
-- negative, not finite or too long).
-- Locks: run, step state, task, queue row. Callers: workers, SQL users.
create or replace function pgflow.postpone_task(
    run_id uuid,
    step_slug text,
    task_index int,
    error_message text,
    delay numeric,
    attempt int default null
) returns setof pgflow.task_record
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
#variable_conflict use_column
declare
    v_run_id uuid := postpone_task.run_id;
    v_slug text := postpone_task.step_slug;
    v_index int := postpone_task.task_index;
    v_cause text := coalesce(postpone_task.error_message, 'postponed without a message');
    v_now timestamptz := clock_timestamp();
    v_task record;
    v_give_up_after int;
    v_delay interval;
begin
    -- Infinity and NaN are above every bound. Postponed by a tenth more it still fits a column of
    -- seconds.
    if postpone_task.delay is null or postpone_task.delay < 0 or postpone_task.delay > 1900000000 then
        raise exception 'delay is % seconds; it must be between 0 and 1900000000', coalesce(postpone_task.delay::text, 'NULL') using
            errcode = 'PF009',
            hint = 'Say when the task may be tried again, in seconds from now on.';
    end if;

    if pgflow._lock_attempt(v_run_id, v_slug, v_index, postpone_task.attempt) then
        update pgflow.step_tasks t
        set
            uncounted_attempts = t.uncounted_attempts + 1,
            postponed_count = t.postponed_count + 1,
            postponed_since = coalesce(t.postponed_since, v_now)
        where t.run_id = v_run_id and t.step_slug = v_slug and t.task_index = v_index
        returning t.flow_slug, t.queue_name, t.message_id, t.postponed_count, t.postponed_since into strict v_task;
        select o.give_up_after into strict v_give_up_after
        from pgflow.step_options o
        where o.flow_slug = v_task.flow_slug and o.step_slug = v_slug;

        v_delay := make_interval(secs => postpone_task.delay::float8 * (1 + random() / 10));
        if v_now - v_task.postponed_since > make_interval(secs => v_give_up_after) then
            perform pgflow._exhaust_task(v_run_id, v_slug, v_index, format(
                'postponed %s times since %s, for longer than give_up_after (%s s): %s',
                v_task.postponed_count, v_task.postponed_since, v_give_up_after, v_cause
            ));
        elsif pgflow._hide_message(v_task.queue_name, v_task.message_id, v_delay) then
            update pgflow.step_tasks t
            set
                status = 'queued', started_at = null, error_message = v_cause,
                retry_delay = round(extract(epoch from v_delay))::int
            where t.run_id = v_run_id and t.step_slug = v_slug and t.task_index = v_index;
        else
            perform pgflow._exhaust_task(
                v_run_id, v_slug, v_index,
                format('%s (not retried: its message is gone from queue "%s")', v_cause, v_task.queue_name)
            );
        end if;
    end if;

    return query select r.* from pgflow._row_of_task(v_run_id, v_slug, v_index) r;
end
$$;
