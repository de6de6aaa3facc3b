-- Functions that define flows create queues with the rights of the role that owns them, which is this one.
do $rights$
begin
    if not (
        pg_catalog.has_schema_privilege('pgmq', 'usage')
        and pg_catalog.has_schema_privilege('pgmq', 'create')
        and pg_catalog.has_table_privilege('pgmq.meta', 'select')
        and pg_catalog.has_table_privilege('pgmq.meta', 'insert')
        and pg_catalog.has_table_privilege('pgmq.meta', 'delete')
    ) then
        raise exception
            'role % may not create queues in schema pgmq; expected USAGE and CREATE on it, and SELECT, INSERT and DELETE on its tables; run as its owner: %',
            current_user,
            pg_catalog.format(
                'grant usage, create on schema pgmq to %1$I; grant all on all tables in schema pgmq to %1$I; grant all on all sequences in schema pgmq to %1$I',
                current_user
            )
            using errcode = 'insufficient_privilege';
    end if;
end
$rights$;
