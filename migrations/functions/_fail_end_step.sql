-- The task of an end step has no attempt left: it fails, and its step with it. Its run has
-- already ended, and does not change. Raises PF012 (the task or its step is not started).
-- Locks: needs the run's row; takes step state, task, queue row. Callers: _exhaust_task.
create or replace function pgflow._fail_end_step(run_id uuid, step_slug text, task_index int, error_message text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    v_queue text;
    v_message bigint;
    v_count int;
begin
    update pgflow.step_tasks t
    set status = 'failed', failed_at = greatest(clock_timestamp(), t.queued_at), error_message = _fail_end_step.error_message
    where t.run_id = _fail_end_step.run_id and t.step_slug = _fail_end_step.step_slug and t.task_index = _fail_end_step.task_index
        and t.status = 'started'
    returning t.queue_name, t.message_id into v_queue, v_message;
    get diagnostics v_count = row_count;
    if v_count <> 1 then
        raise exception 'run %: task "%" [%] is not started', run_id, step_slug, task_index using errcode = 'PF012';
    end if;
    update pgflow.step_states s
    set status = 'failed', failed_at = greatest(clock_timestamp(), s.created_at, s.started_at), error_message = _fail_end_step.error_message
    where s.run_id = _fail_end_step.run_id and s.step_slug = _fail_end_step.step_slug and s.status = 'started';
    get diagnostics v_count = row_count;
    if v_count <> 1 then
        raise exception 'run %: end step "%" is not started', run_id, step_slug using errcode = 'PF012';
    end if;
    perform pgflow._archive_messages(array[v_queue], array[v_message]);
    perform pgflow._emit_events(array['step:failed'], array[_fail_end_step.run_id], array[_fail_end_step.step_slug]);
end
$$;
