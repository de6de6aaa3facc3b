-- Locks an attempt that somebody reports on, and returns whether it is the current one. A late
-- report (the run, step or task is no longer started, or another attempt is the current one) is to
-- change nothing; the message of a task that has ended is archived. The run of an end step has
-- ended: its step and task decide. `attempt` NULL speaks for whichever is current. Raises PF003
-- (unknown task).
-- Locks: run, step state, task, queue row. Callers: fail_task, postpone_task.
create or replace function pgflow._lock_attempt(run_id uuid, step_slug text, task_index int, attempt int) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    v_run_status text;
    v_step_status text;
    v_task record;
begin
    select r.status into v_run_status from pgflow.runs r where r.run_id = _lock_attempt.run_id for no key update;
    select s.status into v_step_status
    from pgflow.step_states s
    where s.run_id = _lock_attempt.run_id and s.step_slug = _lock_attempt.step_slug
    for no key update;
    select t.flow_slug, t.status, t.attempts_count, t.queue_name, t.message_id into v_task
    from pgflow.step_tasks t
    where t.run_id = _lock_attempt.run_id and t.step_slug = _lock_attempt.step_slug and t.task_index = _lock_attempt.task_index
    for no key update;
    if not found then
        raise exception 'there is no task "%" [%] in run %', _lock_attempt.step_slug, _lock_attempt.task_index, _lock_attempt.run_id using
            errcode = 'PF003',
            hint = 'Its run may have been deleted.';
    end if;
    if v_step_status = 'started' and v_task.status = 'started'
        and (_lock_attempt.attempt is null or _lock_attempt.attempt = v_task.attempts_count)
    then
        if v_run_status = 'started' then
            return true;
        end if;
        return exists (
            select from pgflow.steps d where d.flow_slug = v_task.flow_slug and d.step_slug = _lock_attempt.step_slug and d.runs_on is not null
        );
    end if;
    if v_task.status not in ('queued', 'started') and v_task.message_id is not null then
        perform pgflow._archive_messages(array[v_task.queue_name], array[v_task.message_id]);
    end if;
    return false;
end
$$;
