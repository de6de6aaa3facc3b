-- Refuses JSON that is short where it is stored and too long where it is printed: `1e131071` takes
-- 16 bytes in a `jsonb` and 131,072 as text. No claim could hand it to a worker. What takes no more
-- than 1 KB is not looked at: it prints in 10 MB at most. Raises PF009. `what` begins the sentence.
-- Locks: none. Callers: complete_task, start_flows.
create or replace function pgflow._assert_printable(value jsonb, what text) returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
    v_size bigint;
begin
    if value is null or pg_column_size(value) <= 1024 then
        return;
    end if;
    begin
        v_size := octet_length(value::text);
    exception when program_limit_exceeded then
        null;
    end;
    if v_size is null or v_size > 268435455 then
        raise exception '% takes % bytes as text, more than the 268435455 that a worker can be handed', what, coalesce(v_size::text, 'over 1000000000') using
            errcode = 'PF009',
            hint = 'Keep large data elsewhere and pass where it lies; numbers such as 1e131071 are written out in full.';
    end if;
end
$$;
