
do $record$
declare
    v_before jsonb := pg_catalog.current_setting('pgflow.signatures_before')::jsonb;
    v_known jsonb := '{functions}';
    v_long_gone text[] := array(
        select recorded.name
        from pgflow.schema_functions recorded
        where not v_known ? recorded.name
            and case when recorded.digest like '{gone}%' then pg_catalog.substr(recorded.digest, pg_catalog.length('{gone}') + 1)::int < {level} end
    );
    v_signature text;
    v_wrong text;
begin
    foreach v_signature in array array(
        select recorded.signature
        from pgflow.schema_functions recorded
        join (
            {live_functions}
        ) live on live.signature = recorded.signature
        where recorded.name in (select gone.name from pg_catalog.unnest(v_long_gone) gone (name))
            or exists (
                select from (
                    {live_functions}
                ) other
                where other.name = recorded.name and other.signature <> recorded.signature and not v_before ? other.signature
            )
        order by recorded.name
    ) loop
        execute 'drop function ' || v_signature;
    end loop;
    delete from pgflow.schema_functions where name = any (v_long_gone);
    -- They stay until the tables change again: calls in flight still need them.
    update pgflow.schema_functions set digest = '{gone}{level}' where not v_known ? name and digest not like '{gone}%';

    select pg_catalog.string_agg(known.name, ', ') into v_wrong
    from pg_catalog.jsonb_each_text(v_known) known (name, digest)
    where (
        select count(*)
        from (
            {live_functions}
        ) live
        where live.name = known.name
    ) <> 1;
    if v_wrong is not null then
        raise exception 'functions of schema pgflow exist more than once: %', v_wrong
            using hint = 'Drop those that are not part of pgflow.';
    end if;

    -- A new function may be called by everybody who may use its schema; ours are granted by name.
    foreach v_signature in array array(
        select live.signature
        from pg_catalog.jsonb_each_text(v_known) known (name, digest)
        join (
            {live_functions}
        ) live using (name)
        left join pgflow.schema_functions recorded using (name)
        where (recorded.signature, recorded.digest) is distinct from (live.signature, known.digest)
            or not v_before ? live.signature
    ) loop
        execute 'revoke all on function ' || v_signature || ' from public';
    end loop;

    insert into pgflow.schema_functions as recorded (name, signature, digest)
    select known.name, live.signature, known.digest
    from pg_catalog.jsonb_each_text(v_known) known (name, digest)
    join (
        {live_functions}
    ) live using (name)
    on conflict (name) do update
    set signature = excluded.signature, digest = excluded.digest, applied_at = excluded.applied_at
    where (recorded.signature, recorded.digest) <> (excluded.signature, excluded.digest);

    update pgflow.installation set protocol_version = {protocol}
    where protocol_version is distinct from {protocol};

    -- Each time: a dump that was restored without rights opens every function to everybody.
    foreach v_signature in array array(
        select open.object
        from (
            {public_rights}
        ) open
        where open.is_own
    ) loop
        execute 'revoke all on ' || v_signature || ' from public';
    end loop;
end
$record$;
