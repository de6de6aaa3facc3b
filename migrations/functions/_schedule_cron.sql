-- Schedules a call of a function with pg_cron, under the name of a job that it changes when it is
-- there. Returns what it did. Raises PF009 (a schedule that pg_cron can't read), PF011 (the
-- database has no pg_cron, with a hint of what to do without), and pg_cron's own errors.
-- Locks: pg_cron's own. Callers: setup_requeue_stalled_tasks_cron, setup_ensure_workers_cron.
create or replace function pgflow._schedule_cron(job_name text, cron_interval text, call text, without_cron text) returns text
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    c_hint constant text := 'For example ''15 seconds'' (pg_cron 1.5 and newer), or ''* * * * *'' for every minute.';
begin
    if to_regprocedure('cron.schedule(text,text,text)') is null then
        raise exception 'this database has no pg_cron' using errcode = 'PF011', hint = without_cron;
    end if;
    if cron_interval is null then
        raise exception 'the schedule is null' using errcode = 'PF009', hint = c_hint;
    end if;
    begin
        execute 'select cron.schedule($1, $2, $3)' using job_name, cron_interval, 'select ' || call;
    exception when invalid_parameter_value then
        raise exception 'pg_cron refuses the schedule "%": %', cron_interval, sqlerrm using errcode = 'PF009', hint = c_hint;
    end;
    return format('pg_cron runs %s with the schedule "%s"', call, cron_interval);
end
$$;
