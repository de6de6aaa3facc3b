-- End steps: steps that run when a run has ended, and change nothing about it.

-- A busy database must not queue up behind this: give up, change nothing, and let the operator choose
-- a quieter moment.
set local lock_timeout = '10s';

alter table pgflow.steps
    -- NULL: the step is part of the run. `failure`: it runs when a run has ended without completing.
    -- `end`: it runs when a run has ended, however that was.
    add column runs_on text,
    add constraint runs_on_is_valid check (runs_on in ('failure', 'end')),
    add constraint end_step_stands_alone check (
        runs_on is null or (
            step_type = 'single' and deps_count = 0 and not feeds_map
            and required_input_pattern is null and forbidden_input_pattern is null
            and when_unmet = 'skip' and when_exhausted = 'fail'
        )
    );
-- At most one of each in a flow.
create unique index idx_steps_runs_on on pgflow.steps (flow_slug, runs_on) where runs_on is not null;

alter table pgflow.runs
    -- True if the flow has end steps: known with the run's row, so the end of a run of any other flow
    -- costs no look-up.
    add column has_end_steps boolean not null default false;

create or replace view pgflow.step_options as
select
    d.flow_slug, d.step_slug, d.queue_name,
    coalesce(d.opt_timeout, f.opt_timeout) as timeout,
    coalesce(d.opt_max_attempts, f.opt_max_attempts) as max_attempts,
    coalesce(d.opt_base_delay, f.opt_base_delay) as base_delay,
    coalesce(d.opt_max_delay, f.opt_max_delay) as max_delay,
    coalesce(d.opt_give_up_after, f.opt_give_up_after) as give_up_after,
    d.runs_on is not null as is_end_step
from pgflow.steps d
join pgflow.flows f on f.flow_slug = d.flow_slug;

------------------------------------------------------------------------------------------------------------------------
-- Functions whose parameters have changed
------------------------------------------------------------------------------------------------------------------------

-- Internal. Calls in flight resolve to the new function, whose further parameter has a default.
drop function if exists pgflow._define_step(text, text, text[], int, int, int, int, text, jsonb, jsonb, text, text, text, int, int, text);

-- Public: renamed and not dropped, since calls that have been planned go on by the old function. The
-- next numbered file may drop it.
do $$
declare
    v_old regprocedure := to_regprocedure(
        'pgflow.add_step(text, text, text[], int, int, int, int, text, jsonb, jsonb, text, text, int, int, text)'
    );
begin
    if v_old is not null then
        execute format('alter function %s rename to _add_step_at_level_11', v_old);
        -- Bodies qualify their parameters with the function's name.
        execute regexp_replace(pg_get_functiondef(v_old), '\madd_step\.', '_add_step_at_level_11.', 'g');
    end if;
    -- Functions that the last file left for calls that were in flight then. When it is applied together with this
    -- one, they still may be.
    if exists (select from pgflow.schema_migrations m where m.version = 9 and m.applied_at < now()) then
        drop function if exists pgflow._create_flow_at_level_8(text, int, int, int);
        drop function if exists pgflow._add_step_at_level_8(text, text, text[], int, int, int, int, text, jsonb, jsonb, text, text);
        drop function if exists pgflow._tune_flow_at_level_8(text, text, int, int, int, int);
    end if;
end
$$;
