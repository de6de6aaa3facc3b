-- An element of a map may fail without its step.

-- A busy database must not queue up behind this: give up, change nothing, and let the operator choose
-- a quieter moment.
set local lock_timeout = '10s';

alter table pgflow.steps
    -- The effect of an element whose attempts are exhausted: fail, a failure of the step; null, a null in the
    -- step's output.
    add column on_element_failure text not null default 'fail',
    add constraint on_element_failure_is_valid check (on_element_failure in ('fail', 'null')),
    add constraint only_elements_are_tolerated check (on_element_failure = 'fail' or step_type = 'map');

alter table pgflow.step_states
    -- Elements that failed without their step. `remaining_tasks` counts them no more.
    add column failed_tasks int not null default 0,
    -- Not validated: the rows that are there have the default, and may be many.
    add constraint failed_tasks_are_tasks check (
        failed_tasks = 0 or failed_tasks between 1 and initial_tasks - coalesce(remaining_tasks, 0)
    ) not valid;

-- Internal. Calls in flight resolve to the new function, whose further parameter has a default.
drop function if exists pgflow._define_step(text, text, text[], int, int, int, int, text, jsonb, jsonb, text, text, text, int, int);

-- Renamed and not dropped: calls that have been planned go on by the old function. The next numbered file
-- may drop those of `_at_level_10`.
do $$
declare
    v_old regprocedure := to_regprocedure(
        'pgflow.add_step(text, text, text[], int, int, int, int, text, jsonb, jsonb, text, text, int, int)'
    );
begin
    if v_old is not null then
        execute format('alter function %s rename to _add_step_at_level_10', v_old);
        -- Its body qualifies its parameters with its name.
        execute regexp_replace(pg_get_functiondef(v_old), '\madd_step\.', '_add_step_at_level_10.', 'g');
    end if;
end
$$;
