-- A new UUID of version 7 (RFC 9562): the milliseconds since 1970, then random bits. Runs that are
-- started together stand together in every index, which keeps the pages that are written few.
-- Locks: none. Callers: start_flows.
create or replace function pgflow._new_run_id() returns uuid
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    return encode(
        -- From version 4 to version 7.
        set_bit(set_bit(
            overlay(
                uuid_send(gen_random_uuid())
                placing substring(int8send(floor(extract(epoch from clock_timestamp()) * 1000)::bigint) from 3)
                from 1 for 6
            ),
            52, 1
        ), 53, 1),
        'hex'
    )::uuid;
end
$$;
