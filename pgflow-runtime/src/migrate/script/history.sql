do $check$
declare
    v_newest int := (select coalesce(max(version), 0) from pgflow.schema_migrations);
    v_migration record;
begin
    if v_newest > {latest} then
        raise exception 'the database is at migration %, this script ends at {latest}', v_newest
            using hint = 'Use the script of the release that migrated the database, or of a newer one.';
    end if;
    for v_migration in
        select known.version, known.name, known.digest <> recorded.digest as is_edited, recorded.version is null as is_missing
        from (
            values
                {migrations}
        ) known (version, name, digest)
        left join pgflow.schema_migrations recorded using (version)
        order by known.version
    loop
        if v_migration.is_edited then
            raise exception 'migration % (%) differs from the one that was applied', v_migration.version, v_migration.name
                using hint = 'Released files never change; use the script of a release.';
        end if;
        if v_migration.is_missing and v_migration.version < v_newest then
            raise exception 'the database records migration % but not %', v_newest, v_migration.version
                using hint = 'Restore the row of pgflow.schema_migrations that was deleted, or restore a backup.';
        end if;
    end loop;
end
$check$;
