-- Seconds until the next attempt: floor(base_delay * 2^attempts), at most a day.
-- Locks: none. Callers: fail_task.
create or replace function pgflow._retry_delay(base_delay int, attempts int) returns int
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
    -- 2^17 seconds are more than a day: a larger exponent changes nothing and would only overflow.
    return least(base_delay::bigint * (1::bigint << least(attempts, 17)), 86400)::int;
end
$$;
