-- Raises PF004 unless the JSON is laid out as a shape; what it says is checked by
-- _assert_step_slugs, _define_flow and _define_step.
-- Locks: none. Callers: ensure_flow_compiled.
create or replace function pgflow._assert_shape(flow_slug text, shape jsonb) returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
    v_step jsonb;
    v_options jsonb;
    v_unknown text;
begin
    if jsonb_typeof(shape) is distinct from 'object' or jsonb_typeof(shape -> 'steps') is distinct from 'array' then
        raise exception 'flow "%": the shape is not an object with an array "steps"', flow_slug using
            errcode = 'PF004',
            hint = 'A worker sends the shape of its flow by itself: {"steps": [..], "options": {..}}.';
    end if;
    for v_step in select jsonb_array_elements(shape -> 'steps') loop
        if jsonb_typeof(v_step -> 'slug') is distinct from 'string'
            or jsonb_typeof(v_step -> 'stepType') is distinct from 'string'
            or jsonb_typeof(v_step -> 'dependencies') is distinct from 'array'
            or jsonb_path_exists(v_step, '$.dependencies[*] ? (@.type() != "string")')
            or jsonb_typeof(v_step -> 'whenUnmet') is distinct from 'string'
            or jsonb_typeof(v_step -> 'whenExhausted') is distinct from 'string'
            or jsonb_typeof(v_step -> 'onElementFailure') <> 'string'
            or jsonb_typeof(v_step -> 'runsOn') <> 'string'
            -- A value that is not `defined` would be stored, and every later start would find
            -- another shape.
            or v_step #>> '{requiredInputPattern,defined}' is distinct from (v_step #> '{requiredInputPattern,value}' is not null)::text
            or v_step #>> '{forbiddenInputPattern,defined}' is distinct from (v_step #> '{forbiddenInputPattern,value}' is not null)::text
        then
            raise exception 'flow "%": a step of the shape lacks a part or has one of a wrong type', flow_slug using
                errcode = 'PF004',
                hint = 'Each step has slug, stepType, dependencies, whenUnmet, whenExhausted, requiredInputPattern and forbiddenInputPattern;'
                    ' a map may have onElementFailure, and one that runs when the run has ended has runsOn.';
        end if;
    end loop;

    select o.name into v_unknown
    from (
        select k as name from jsonb_object_keys(case when jsonb_typeof(shape -> 'options') = 'object' then shape -> 'options' else '{}' end) k
        where k not in ('maxAttempts', 'baseDelay', 'maxDelay', 'giveUpAfter', 'timeout')
        union all
        select k
        from jsonb_array_elements(shape -> 'steps') e
        cross join jsonb_object_keys(case when jsonb_typeof(e -> 'options') = 'object' then e -> 'options' else '{}' end) k
        where k not in ('maxAttempts', 'baseDelay', 'maxDelay', 'giveUpAfter', 'timeout', 'startDelay')
    ) o
    limit 1;
    if found then
        raise exception 'flow "%": the shape has an unknown option "%"', flow_slug, v_unknown using
            errcode = 'PF004',
            hint = 'Options are maxAttempts, baseDelay, maxDelay, giveUpAfter and timeout; those of a step also startDelay.';
    end if;

    for v_options in select shape -> 'options' union all select e -> 'options' from jsonb_array_elements(shape -> 'steps') e loop
        continue when v_options is null;
        if jsonb_typeof(v_options) = 'object' then
            continue when not exists (
                select
                from jsonb_each(v_options) o
                where case
                    when jsonb_typeof(o.value) = 'number' then scale(o.value::numeric) > 0 or abs(o.value::numeric) > 2147483647
                    else true
                end
            );
        end if;
        raise exception 'flow "%": an option of the shape is not a whole number up to 2147483647', flow_slug using
            errcode = 'PF004',
            detail = v_options::text,
            hint = 'Leave an option out to inherit it.';
    end loop;
end
$$;
