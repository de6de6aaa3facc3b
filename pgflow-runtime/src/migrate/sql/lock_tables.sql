-- All tables at once, in the order in which functions take them, before the first numbered file changes one: a file that takes
-- them one by one deadlocks with calls in flight. Each attempt waits less than deadlock_timeout, then lets go of all that it has:
-- if calls and this wait for each other, it is this that gives up, and what queues up behind it stands still no longer than that.
do $lock$
declare
    v_tables text;
    v_deadline timestamptz := pg_catalog.clock_timestamp() + interval '{table_lock_wait} s';
begin
    if not exists (select from pgflow.schema_migrations)
        or exists (select from pgflow.schema_migrations where version >= {level})
    then
        return;
    end if;
    select pg_catalog.string_agg(pg_catalog.format('pgflow.%I', t.relname), ', ' order by o.n, t.relname) into v_tables
    from pg_catalog.pg_class t
    left join unnest(array[
        'worker_functions', 'workers', 'flows', 'steps', 'deps', 'runs', 'claims', 'step_states', 'step_tasks', 'wakeups'
    ]::name[]) with ordinality as o (relname, n) on o.relname = t.relname
    where t.relnamespace = 'pgflow'::regnamespace and t.relkind = 'r' and t.relname not in ('schema_migrations', 'schema_functions');
    if v_tables is null then
        return;
    end if;
    loop
        begin
            perform pg_catalog.set_config(
                'lock_timeout',
                (select least(500, s.setting::int / 2)::text from pg_catalog.pg_settings s where s.name = 'deadlock_timeout'),
                true
            );
            execute 'lock table ' || v_tables || ' in access exclusive mode';
            exit;
        exception when lock_not_available or deadlock_detected then
            if pg_catalog.clock_timestamp() > v_deadline then
                raise;
            end if;
        end;
        perform pg_catalog.pg_sleep(0.05 + 0.2 * pg_catalog.random());
    end loop;
    perform pg_catalog.set_config('lock_timeout', '{table_lock_wait} s', true);
end
$lock$;
