-- A started task has no attempt left: its step's when_exhausted decides. fail: the run fails. skip,
-- skip-cascade: the task fails, the step is skipped (reason handler_failed), its other active tasks
-- with it, and the run continues. A map whose on_element_failure is null does without the task, and
-- when_exhausted decides once all its tasks have failed. An end step fails alone: its run has
-- already ended. A run that would end with an output that is too large fails as well. Returns
-- whether new tasks were queued.
-- Locks: needs the run's row; takes step states, tasks, queue rows. Callers: fail_task,
-- postpone_task, recover_tasks.
create or replace function pgflow._exhaust_task(run_id uuid, step_slug text, task_index int, error_message text) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    v_run_id uuid := _exhaust_task.run_id;
    v_slug text := _exhaust_task.step_slug;
    v_mode text;
    v_on_element text;
    v_is_end_step boolean;
    v_queue text;
    v_message bigint;
    v_count int;
begin
    select d.when_exhausted, d.on_element_failure, d.runs_on is not null into strict v_mode, v_on_element, v_is_end_step
    from pgflow.runs r
    join pgflow.steps d on d.flow_slug = r.flow_slug and d.step_slug = v_slug
    where r.run_id = v_run_id;

    if v_is_end_step then
        perform pgflow._fail_end_step(v_run_id, v_slug, task_index, error_message);
        return false;
    elsif v_on_element = 'null' then
        return pgflow._fail_element(v_run_id, v_slug, task_index, error_message, v_mode);
    elsif v_mode = 'fail' then
        perform pgflow._fail_run(v_run_id, v_slug, task_index, error_message);
        return false;
    end if;

    begin
        update pgflow.step_tasks t
        set status = 'failed', failed_at = greatest(clock_timestamp(), t.queued_at), error_message = _exhaust_task.error_message
        where t.run_id = v_run_id and t.step_slug = v_slug and t.task_index = _exhaust_task.task_index and t.status = 'started'
        returning t.queue_name, t.message_id into v_queue, v_message;
        get diagnostics v_count = row_count;
        if v_count <> 1 then
            raise exception 'run %: task "%" [%] is not started', v_run_id, v_slug, task_index using errcode = 'PF012';
        end if;
        perform pgflow._archive_messages(array[v_queue], array[v_message]);
        perform pgflow._skip_steps(v_run_id, v_slug, 'handler_failed', error_message, cascade => v_mode = 'skip-cascade');
        return pgflow._advance_runs(array[v_run_id]);
    exception when sqlstate 'PF009' then
        -- The run would end, with an output that can't be stored: see _settle_steps. All that this
        -- did is undone.
        perform pgflow._fail_run(v_run_id, v_slug, task_index, sqlerrm);
        return false;
    end;
end
$$;
