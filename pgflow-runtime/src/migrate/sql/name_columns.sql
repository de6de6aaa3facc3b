-- Up to level 7 these functions return all columns of a table. A call that is in flight while the table gains a column would
-- fail: its result no longer fits. So they name the columns of today, in a transaction that is over before the tables change.
do $columns$
declare
    v_function record;
    v_body text;
begin
    if pg_catalog.to_regclass('pgflow.schema_migrations') is null then
        return;
    elsif exists (select from pgflow.schema_migrations where version > 7) then
        return;
    end if;
    for v_function in
        select
            p.oid,
            pg_catalog.string_agg(pg_catalog.quote_ident(a.attname), ', ' order by a.attnum) as bare,
            pg_catalog.string_agg('t.' || pg_catalog.quote_ident(a.attname), ', ' order by a.attnum) as of_t,
            pg_catalog.string_agg('r.' || pg_catalog.quote_ident(a.attname), ', ' order by a.attnum) as of_r,
            pg_catalog.string_agg('v_task.' || pg_catalog.quote_ident(a.attname), ', ' order by a.attnum) as of_task
        from pg_catalog.pg_proc p
        join pg_catalog.pg_type r on r.oid = p.prorettype
        join pg_catalog.pg_class c on c.oid = r.typrelid and c.relkind = 'r'
        join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
        where p.pronamespace = pg_catalog.to_regnamespace('pgflow')
            and p.proname in ('complete_task', 'fail_task', 'create_flow', 'add_step', 'start_flow', 'start_flows')
            -- Who may not replace it learns that from the migration.
            and pg_catalog.pg_has_role(p.proowner, 'usage')
        group by p.oid
    loop
        v_body := pg_catalog.pg_get_functiondef(v_function.oid);
        v_body := pg_catalog.regexp_replace(v_body, '(return query\s+select )t\.\*', '\1' || v_function.of_t);
        v_body := pg_catalog.regexp_replace(v_body, '(return query\s+select )r\.\*', '\1' || v_function.of_r);
        v_body := pg_catalog.regexp_replace(v_body, '(return query\s+select )\*', '\1' || v_function.bare);
        v_body := pg_catalog.regexp_replace(v_body, 'return next v_task;', 'return query select ' || v_function.of_task || ';');
        execute v_body;
    end loop;
end
$columns$;
