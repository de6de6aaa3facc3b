-- Raises PF004 for an option out of its bounds; NULL inherits and is always fine. `what` names the
-- flow or step.
-- Locks: none. Callers: create_flow, _define_flow, _define_step, _follow_options, tune_flow.
create or replace function pgflow._assert_options(
    what text, max_attempts int, base_delay int, timeout int, start_delay int, max_delay int default null, give_up_after int default null
) returns void
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
    elsif max_delay < 1 then
        raise exception '%: max_delay is % seconds; it must be at least 1', what, max_delay using
            errcode = 'PF004',
            hint = 'It is the longest delay between two attempts. Leave it out for the default.';
    elsif give_up_after < 1 then
        raise exception '%: give_up_after is % seconds; it must be at least 1', what, give_up_after using
            errcode = 'PF004',
            hint = 'It is for how long a task may be postponed. Leave it out for the default.';
    end if;
end
$$;
