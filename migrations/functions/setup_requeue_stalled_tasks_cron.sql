-- Lets pg_cron recover stalled tasks too. Workers do so by themselves every 15 seconds; a schedule
-- helps while none of them runs. Called again, it changes the interval. Returns what it did. Raises
-- PF009 (a schedule that pg_cron can't read), PF011 (the database has no pg_cron), and pg_cron's
-- own errors.
-- Locks: pg_cron's own. Callers: operators.
create or replace function pgflow.setup_requeue_stalled_tasks_cron(cron_interval text default '15 seconds') returns text
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    return pgflow._schedule_cron(
        'pgflow_requeue_stalled_tasks', cron_interval, 'pgflow.requeue_stalled_tasks()',
        'Nothing is needed while a worker runs: workers recover stalled tasks every 15 seconds. Else: create extension pg_cron.'
    );
end
$$;
