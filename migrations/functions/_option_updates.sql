-- The statements that give a flow the options that its code sets, one for the flow and for each
-- step that differs: what _option_differences lists, as an operator runs it.
-- Locks: none. Callers: ensure_flow_compiled.
create or replace function pgflow._option_updates(flow_slug text, shape jsonb) returns text[]
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    return array(
        select
            case when step_slug is null
                then format('update pgflow.flows set %s where flow_slug = %L', assignments, _option_updates.flow_slug)
                else format('update pgflow.steps set %s where flow_slug = %L and step_slug = %L', assignments, _option_updates.flow_slug, step_slug)
            end
        from (
            select position, step_slug, string_agg(format('opt_%s = %s', w.word, value), ', ' order by key) as assignments
            from (
                select 0 as position, null::text as step_slug, o.key, o.value,
                    jsonb_build_object('maxAttempts', f.opt_max_attempts, 'baseDelay', f.opt_base_delay, 'timeout', f.opt_timeout,
                    'maxDelay', f.opt_max_delay, 'giveUpAfter', f.opt_give_up_after) as stored
                from pgflow.flows f, jsonb_each(coalesce(shape -> 'options', '{}')) o
                where f.flow_slug = _option_updates.flow_slug
                union all
                select s.step_index + 1, s.step_slug, o.key, o.value,
                    jsonb_build_object('maxAttempts', s.opt_max_attempts, 'baseDelay', s.opt_base_delay,
                        'timeout', s.opt_timeout, 'startDelay', s.opt_start_delay,
                        'maxDelay', s.opt_max_delay, 'giveUpAfter', s.opt_give_up_after)
                from jsonb_array_elements(shape -> 'steps') e
                join pgflow.steps s on s.flow_slug = _option_updates.flow_slug and s.step_slug = e ->> 'slug',
                jsonb_each(coalesce(e -> 'options', '{}')) o
            ) sent
            cross join lateral (
                select case key
                    when 'maxAttempts' then 'max_attempts' when 'baseDelay' then 'base_delay' when 'startDelay' then 'start_delay'
                    when 'maxDelay' then 'max_delay' when 'giveUpAfter' then 'give_up_after' else key
                end as word
            ) w
            where value is distinct from stored -> key
            group by position, step_slug
        ) part
        order by position
    );
end
$$;
