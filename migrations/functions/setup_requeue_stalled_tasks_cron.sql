-- Lets pg_cron recover stalled tasks too. Workers do so by themselves every 15 seconds; a schedule helps while none of them runs.
-- Called again, it changes the interval. Returns what it did.
-- Raises PF009 (a schedule that pg_cron can't read), PF011 (the database has no pg_cron), and pg_cron's own errors.
-- Locks: pg_cron's own. Callers: operators.
create or replace function pgflow.setup_requeue_stalled_tasks_cron(cron_interval text default '15 seconds') returns text
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    c_hint constant text := 'For example ''15 seconds'' (pg_cron 1.5 and newer), or ''* * * * *'' for every minute.';
begin
    if to_regprocedure('cron.schedule(text,text,text)') is null then
        raise exception 'this database has no pg_cron' using
            errcode = 'PF011',
            hint = 'Nothing is needed while a worker runs: workers recover stalled tasks every 15 seconds. Else: create extension pg_cron.';
    end if;
    if cron_interval is null then
        raise exception 'the schedule is null' using errcode = 'PF009', hint = c_hint;
    end if;
    begin
        execute 'select cron.schedule($1, $2, $3)'
        using 'pgflow_requeue_stalled_tasks', cron_interval, 'select pgflow.requeue_stalled_tasks()';
    exception when invalid_parameter_value then
        raise exception 'pg_cron refuses the schedule "%": %', cron_interval, sqlerrm using errcode = 'PF009', hint = c_hint;
    end;
    return format('pg_cron runs pgflow.requeue_stalled_tasks() with the schedule "%s"', cron_interval);
end
$$;
