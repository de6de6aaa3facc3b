-- Fails a run, the one way for all three reasons: a task out of attempts, a type violation, an
-- unmet condition with mode fail. The culprit first (its task, when it has one, and its step), then
-- the run; then every other active task of the run is cancelled, and the messages of all of them
-- are archived, grouped by queue. What had completed stays completed. Last, the flow's end steps
-- start. `output` is kept on a task that failed because of it.
-- Locks: needs the run's row; takes step state, tasks, queue rows. Callers: _exhaust_task,
-- _fail_element, complete_tasks, _resolve_conditions.
create or replace function pgflow._fail_run(
    run_id uuid,
    step_slug text,
    task_index int,
    error_message text,
    output jsonb default null
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    v_run_id uuid := _fail_run.run_id;
    v_queues text[];
    v_messages bigint[];
    v_expected int;
    v_has_end_steps boolean;
    v_count int;
begin
    select array_agg(x.queue_name), array_agg(x.message_id), count(*) into v_queues, v_messages, v_expected
    from (
        select t.queue_name, t.message_id
        from pgflow.step_tasks t
        where t.run_id = v_run_id and t.status in ('queued', 'started')
        order by t.step_slug, t.task_index
        for no key update
    ) x;

    if task_index is not null then
        update pgflow.step_tasks t
        set status = 'failed', failed_at = greatest(clock_timestamp(), t.queued_at), error_message = _fail_run.error_message, output = _fail_run.output
        where t.run_id = v_run_id and t.step_slug = _fail_run.step_slug and t.task_index = _fail_run.task_index
            and t.status in ('queued', 'started');
        get diagnostics v_count = row_count;
        if v_count <> 1 then
            raise exception 'run %: the task that fails it, "%" [%], is not active', v_run_id, step_slug, task_index using errcode = 'PF012';
        end if;
    end if;

    update pgflow.step_states s
    set status = 'failed', failed_at = greatest(clock_timestamp(), s.created_at, s.started_at), error_message = _fail_run.error_message
    where s.run_id = v_run_id and s.step_slug = _fail_run.step_slug and s.status in ('created', 'started');
    get diagnostics v_count = row_count;
    if v_count <> 1 then
        raise exception 'run %: the step that fails it, "%", has ended', v_run_id, step_slug using errcode = 'PF012';
    end if;

    update pgflow.runs r
    set status = 'failed', failed_at = greatest(clock_timestamp(), r.started_at), error_message = _fail_run.error_message
    where r.run_id = v_run_id and r.status = 'started'
    returning r.has_end_steps into v_has_end_steps;
    get diagnostics v_count = row_count;
    if v_count <> 1 then
        raise exception 'run % has ended already', v_run_id using errcode = 'PF012';
    end if;

    update pgflow.step_tasks t
    set status = 'cancelled'
    where t.run_id = v_run_id and t.status in ('queued', 'started');
    get diagnostics v_count = row_count;
    if v_count + (task_index is not null)::int <> v_expected then
        raise exception 'run %: cancelling its tasks changed % rows; there were % active ones', v_run_id, v_count, v_expected using errcode = 'PF012';
    end if;
    if v_messages is not null then
        perform pgflow._archive_messages(v_queues, v_messages);
    end if;

    perform pgflow._emit_events(
        array['step:failed', 'run:failed'], array[v_run_id, v_run_id], array[_fail_run.step_slug, null]
    );
    if v_has_end_steps then
        perform pgflow._start_end_steps(array[v_run_id]);
    end if;
end
$$;
