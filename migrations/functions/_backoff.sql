-- The delay before the attempt that follows so many failures: base_delay * 2^failures, and up to a
-- quarter more at random, so that tasks that failed together do not come back together; max_delay
-- at most. Where that is the cap, up to a fifth less at random, for the same reason.
-- Locks: none. Callers: fail_task.
create or replace function pgflow._backoff(base_delay int, failures int, max_delay int) returns interval
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    -- 2^31 seconds are more than any cap: a larger exponent changes nothing and would only
    -- overflow.
    v_full float8 := base_delay * 2::float8 ^ least(failures, 31);
    v_least float8 := case when v_full < max_delay then v_full else max_delay * 0.8 end;
begin
    if base_delay = 0 then
        return interval '0';
    end if;
    return make_interval(secs => v_least + random() * (least(v_least * 1.25, max_delay) - v_least));
end
$$;
