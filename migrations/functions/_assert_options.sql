-- Raises PF004 for an option out of its bounds; NULL inherits and is always fine. `what` names the flow or step.
-- Locks: none. Callers: create_flow, _define_flow, _define_step.
create or replace function pgflow._assert_options(what text, max_attempts int, base_delay int, timeout int, start_delay int) returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
    if max_attempts < 1 then
        raise exception '%: max_attempts is %; it counts the first attempt too, so it must be at least 1', what, max_attempts using
            errcode = 'PF004',
            hint = '1 allows no retry. Leave it out for the default.';
    elsif base_delay < 0 then
        raise exception '%: base_delay is % seconds; it must not be negative', what, base_delay using
            errcode = 'PF004',
            hint = '0 retries at once. Leave it out for the default.';
    elsif timeout < 1 then
        raise exception '%: timeout is % seconds; it must be at least 1', what, timeout using
            errcode = 'PF004',
            hint = 'Leave it out for the default.';
    elsif start_delay < 0 then
        raise exception '%: start_delay is % seconds; it must not be negative', what, start_delay using
            errcode = 'PF004',
            hint = 'Leave it out to start at once.';
    end if;
end
$$;
