-- Lets pg_cron invoke the worker functions of start mode `http` that have no live worker. Called
-- again, it changes the interval. Returns what it did. Raises PF009 (a schedule that pg_cron can't
-- read), PF011 (the database has no pg_cron), and pg_cron's own errors.
-- Locks: pg_cron's own. Callers: operators.
create or replace function pgflow.setup_ensure_workers_cron(cron_interval text default '5 seconds') returns text
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    return pgflow._schedule_cron(
        'pgflow_ensure_workers', cron_interval, 'pgflow.ensure_workers()',
        'Call pgflow.ensure_workers from a scheduler of your own, or: create extension pg_cron.'
    );
end
$$;
