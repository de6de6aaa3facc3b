-- A task's row as public functions return it; none when there is no such task.
-- Locks: none. Callers: complete_task, fail_task, postpone_task.
create or replace function pgflow._row_of_task(run_id uuid, step_slug text, task_index int) returns setof pgflow.task_record
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
#variable_conflict use_column
begin
    return query
    select
        t.flow_slug, t.run_id, t.step_slug, t.task_index, t.message_id, t.status, t.attempts_count, t.input, t.output, t.error_message, t.queued_at,
        t.started_at, t.completed_at, t.failed_at, t.last_worker_id, t.requeued_count, t.last_requeued_at, t.permanently_stalled_at, t.queue_name,
        t.retry_delay
    from pgflow.step_tasks t
    where t.run_id = _row_of_task.run_id and t.step_slug = _row_of_task.step_slug and t.task_index = _row_of_task.task_index;
end
$$;
