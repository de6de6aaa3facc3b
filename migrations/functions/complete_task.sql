-- Completes one attempt; the same as a batch of one. An output that can't be stored, or with which
-- the run can't end, fails the attempt permanently. Returns the task's row as it is now, whatever
-- the outcome. Raises PF003 (unknown task), PF009 (an output that no worker could be handed).
-- Locks: as complete_tasks. Callers: SQL users.
create or replace function pgflow.complete_task(
    run_id uuid,
    step_slug text,
    task_index int,
    output jsonb,
    attempt int default null
) returns setof pgflow.task_record
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
#variable_conflict use_column
begin
    perform pgflow._assert_printable(complete_task.output, 'the output');
    begin
        perform from pgflow.complete_tasks(
            array[complete_task.run_id], array[complete_task.step_slug], array[complete_task.task_index], array[complete_task.attempt], array[complete_task.output]
        );
    exception when sqlstate 'PF009' or program_limit_exceeded then
        -- It can't be stored, or the run can't end with it. Whoever calls this has nobody else to
        -- record that.
        perform from pgflow.fail_task(
            complete_task.run_id, complete_task.step_slug, complete_task.task_index,
            'the step''s output can''t be stored: ' || sqlerrm, attempt => complete_task.attempt, retryable => false
        );
    end;
    return query select r.* from pgflow._row_of_task(complete_task.run_id, complete_task.step_slug, complete_task.task_index) r;
end
$$;
