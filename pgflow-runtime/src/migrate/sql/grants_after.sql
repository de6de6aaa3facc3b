do $grants$
declare
    v_grant record;
begin
    for v_grant in
        select p.oid::regprocedure as signature, g.value ->> 2 as role, (g.value ->> 3)::boolean as is_grantable
        from pg_catalog.jsonb_array_elements(pg_catalog.current_setting('pgflow.grants_before')::jsonb) g
        join pg_catalog.pg_proc p on p.pronamespace = 'pgflow'::regnamespace and p.proname = g.value ->> 1
        -- Where the function is another one than before.
        where p.oid <> (g.value ->> 0)::oid
    loop
        execute pg_catalog.format(
            'grant execute on function %s to %I %s', v_grant.signature, v_grant.role, case when v_grant.is_grantable then 'with grant option' else '' end
        );
    end loop;
end
$grants$;
