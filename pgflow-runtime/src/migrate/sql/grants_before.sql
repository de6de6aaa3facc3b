-- Who may call what: a function that a numbered file drops and its own file creates again keeps its grants.
do $grants$
begin
    perform pg_catalog.set_config(
        'pgflow.grants_before',
        (
            select coalesce(
                pg_catalog.jsonb_agg(pg_catalog.jsonb_build_array(p.oid, p.proname, r.rolname, a.is_grantable)), '[]'
            )::text
            from pg_catalog.pg_proc p
            cross join lateral pg_catalog.aclexplode(p.proacl) a
            join pg_catalog.pg_roles r on r.oid = a.grantee
            where p.pronamespace = pg_catalog.to_regnamespace('pgflow') and a.grantee <> p.proowner
        ),
        true
    );
end
$grants$;
