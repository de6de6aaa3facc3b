-- Refused is not failed, and a crash is not the neighbour's fault.

-- A busy database must not queue up behind this: give up, change nothing, and let the operator choose
-- a quieter moment.
set local lock_timeout = '10s';

alter table pgflow.flows
    -- Seconds: the longest backoff, and how long a task may be postponed without a real attempt.
    add column opt_max_delay int not null default 3600,
    add column opt_give_up_after int not null default 86400,
    add constraint opt_max_delay_is_positive check (opt_max_delay >= 1),
    add constraint opt_give_up_after_is_positive check (opt_give_up_after >= 1);
alter table pgflow.steps
    -- NULL: the flow's value.
    add column opt_max_delay int,
    add column opt_give_up_after int,
    add constraint opt_max_delay_is_positive check (opt_max_delay >= 1),
    add constraint opt_give_up_after_is_positive check (opt_give_up_after >= 1);

create or replace view pgflow.step_options as
select
    d.flow_slug, d.step_slug, d.queue_name,
    coalesce(d.opt_timeout, f.opt_timeout) as timeout,
    coalesce(d.opt_max_attempts, f.opt_max_attempts) as max_attempts,
    coalesce(d.opt_base_delay, f.opt_base_delay) as base_delay,
    coalesce(d.opt_max_delay, f.opt_max_delay) as max_delay,
    coalesce(d.opt_give_up_after, f.opt_give_up_after) as give_up_after
from pgflow.steps d
join pgflow.flows f on f.flow_slug = d.flow_slug;

alter table pgflow.step_tasks
    -- Attempts that count neither against max_attempts nor in the backoff: postponed, or given back.
    -- `attempts_count` counts all of them, so an attempt's number is unique.
    add column uncounted_attempts int not null default 0,
    -- The postponements since the last attempt that counted, and when the first of them was.
    add column postponed_count int not null default 0,
    add column postponed_since timestamptz,
    -- Its attempts are used up, and the last one ended with its worker: one more follows, for which
    -- nothing else runs in its worker's process.
    add column runs_alone boolean not null default false,
    -- Not validated: the rows that are there have the defaults, and may be many.
    add constraint uncounted_attempts_are_attempts check (uncounted_attempts between 0 and attempts_count) not valid,
    add constraint postponed_count_matches_since check (
        postponed_count >= 0 and (postponed_count > 0) = (postponed_since is not null)
    ) not valid;

alter table pgflow.workers
    -- The attempt that this worker's process makes room for, or runs alone: the message of its task, and
    -- the number that it will have. Meanwhile claims of the process hand out nothing else.
    add column alone_queue text,
    add column alone_message bigint,
    add column alone_attempt int,
    add column alone_since timestamptz,
    add constraint alone_names_an_attempt check (num_nulls(alone_queue, alone_message, alone_attempt, alone_since) in (0, 4));

------------------------------------------------------------------------------------------------------------------------
-- Functions whose parameters have changed
------------------------------------------------------------------------------------------------------------------------

-- Internal ones. Calls in flight resolve to the new functions, whose further parameters have defaults.
drop function if exists pgflow._assert_options(text, int, int, int, int);
drop function if exists pgflow._define_step(text, text, text[], int, int, int, int, text, jsonb, jsonb, text, text, text);

-- Public ones are renamed and not dropped: calls that have been planned go on by the old functions. The
-- next numbered file may drop those of `_at_level_8`.
do $$
declare
    v_old regprocedure;
    v_name text;
begin
    foreach v_old in array array_remove(array[
        to_regprocedure('pgflow.create_flow(text, int, int, int)'),
        to_regprocedure('pgflow.add_step(text, text, text[], int, int, int, int, text, jsonb, jsonb, text, text)'),
        to_regprocedure('pgflow.tune_flow(text, text, int, int, int, int)')
    ], null) loop
        select p.proname into strict v_name from pg_proc p where p.oid = v_old;
        execute format('alter function %s rename to %I', v_old, '_' || v_name || '_at_level_8');
        -- Bodies qualify their parameters with the function's name.
        execute regexp_replace(pg_get_functiondef(v_old), '\m' || v_name || '\.', '_' || v_name || '_at_level_8.', 'g');
    end loop;
end
$$;
