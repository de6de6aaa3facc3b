-- One line per option that the worker's code sets to another value than the stored one, in the
-- words of the attributes `#[flow]` and `#[step]`, in seconds.
-- Stored values win: operators tune them.
-- Locks: none. Callers: ensure_flow_compiled.
create or replace function pgflow._option_differences(flow_slug text, shape jsonb) returns text[]
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    return array(
        select format(
            '%s, %s: %s in the code, %s in the database',
            part, w.word, value || w.unit, coalesce((stored ->> key) || w.unit, case key when 'startDelay' then 'none' else 'inherited' end)
        )
        from (
            select 0 as position, 'flow' as part, o.key, o.value,
                jsonb_build_object('maxAttempts', f.opt_max_attempts, 'baseDelay', f.opt_base_delay, 'timeout', f.opt_timeout,
                    'maxDelay', f.opt_max_delay, 'giveUpAfter', f.opt_give_up_after) as stored
            from pgflow.flows f, jsonb_each(coalesce(shape -> 'options', '{}')) o
            where f.flow_slug = _option_differences.flow_slug
            union all
            select s.step_index + 1, format('step "%s"', s.step_slug), o.key, o.value,
                jsonb_build_object('maxAttempts', s.opt_max_attempts, 'baseDelay', s.opt_base_delay,
                    'timeout', s.opt_timeout, 'startDelay', s.opt_start_delay,
                        'maxDelay', s.opt_max_delay, 'giveUpAfter', s.opt_give_up_after)
            from jsonb_array_elements(shape -> 'steps') e
            join pgflow.steps s on s.flow_slug = _option_differences.flow_slug and s.step_slug = e ->> 'slug',
            jsonb_each(coalesce(e -> 'options', '{}')) o
        ) sent
        cross join lateral (
            select
                case key
                    when 'maxAttempts' then 'max_attempts' when 'baseDelay' then 'base_delay' when 'startDelay' then 'start_delay'
                    when 'maxDelay' then 'max_delay' when 'giveUpAfter' then 'give_up_after' else key
                end as word,
                case key when 'maxAttempts' then '' else ' s' end as unit
        ) w
        where value is distinct from stored -> key
        order by position, key
    );
end
$$;
