-- A started task of a map whose on_element_failure is null has no attempt left: the task fails with
-- its error, and the step does without it. When it was the last one that the step waited for, the
-- step ends: it completes, with a null for each task that failed; or, when every one failed, its
-- when_exhausted decides, and the step's error says how many. A step whose output is too large, or
-- whose run would end with an output that is, fails its run. Returns whether new tasks were queued.
-- Locks: needs the run's row; takes step states, tasks, queue rows. Callers: _exhaust_task.
create or replace function pgflow._fail_element(
    run_id uuid, step_slug text, task_index int, error_message text, when_exhausted text
) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    v_run_id uuid := _fail_element.run_id;
    v_slug text := _fail_element.step_slug;
    v_mode text := _fail_element.when_exhausted;
    v_queue text;
    v_message bigint;
    v_step record;
    v_error text;
    v_output jsonb;
    v_count int;
begin
    update pgflow.step_tasks t
    set status = 'failed', failed_at = greatest(clock_timestamp(), t.queued_at), error_message = _fail_element.error_message
    where t.run_id = v_run_id and t.step_slug = v_slug and t.task_index = _fail_element.task_index and t.status = 'started'
    returning t.queue_name, t.message_id into v_queue, v_message;
    get diagnostics v_count = row_count;
    if v_count <> 1 then
        raise exception 'run %: task "%" [%] is not started', v_run_id, v_slug, task_index using errcode = 'PF012';
    end if;
    update pgflow.step_states s
    set remaining_tasks = s.remaining_tasks - 1, failed_tasks = s.failed_tasks + 1
    where s.run_id = v_run_id and s.step_slug = v_slug and s.status = 'started'
    returning s.initial_tasks, s.remaining_tasks, s.failed_tasks into v_step;
    get diagnostics v_count = row_count;
    if v_count <> 1 then
        raise exception 'run %: step "%" is not started', v_run_id, v_slug using errcode = 'PF012';
    end if;
    perform pgflow._archive_messages(array[v_queue], array[v_message]);
    if v_step.remaining_tasks > 0 then
        return false;
    end if;

    if v_step.failed_tasks = v_step.initial_tasks then
        v_error := case v_step.initial_tasks
            when 1 then format('its only element failed: %s', _fail_element.error_message)
            else format('all %s elements failed, at last element %s: %s', v_step.initial_tasks, task_index, _fail_element.error_message)
        end;
        if v_mode = 'fail' then
            perform pgflow._fail_run(v_run_id, v_slug, null, v_error);
            return false;
        end if;
    else
        v_output := pgflow._map_output(v_run_id, v_slug);
        if v_output is null then
            perform pgflow._fail_large_maps(array[v_run_id], array[v_slug], '{}', '{}', '{}');
            return false;
        end if;
    end if;

    begin
        if v_error is not null then
            perform pgflow._skip_steps(v_run_id, v_slug, 'handler_failed', v_error, cascade => v_mode = 'skip-cascade');
        else
            update pgflow.step_states s
            set status = 'completed', completed_at = greatest(clock_timestamp(), s.started_at), output = v_output
            where s.run_id = v_run_id and s.step_slug = v_slug and s.status = 'started';
            get diagnostics v_count = row_count;
            if v_count <> 1 then
                raise exception 'completing step "%" of run % changed % rows', v_slug, v_run_id, v_count using errcode = 'PF012';
            end if;
            perform pgflow._settle_steps(array[v_run_id], array[v_slug], 'step:completed');
        end if;
        return pgflow._advance_runs(array[v_run_id]);
    exception when sqlstate 'PF009' then
        -- The run would end, with an output that can't be stored: see _settle_steps. The end of the
        -- step is undone.
        perform pgflow._fail_run(v_run_id, v_slug, null, sqlerrm);
        return false;
    end;
end
$$;
