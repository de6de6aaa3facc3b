-- Raises PF004 unless the JSON is laid out as a shape; what it says is checked by create_flow and add_step.
-- Locks: none. Callers: ensure_flow_compiled.
create or replace function pgflow._assert_shape(flow_slug text, shape jsonb) returns void
language plpgsql immutable
set search_path = ''
as $$
declare
    v_step jsonb;
begin
    if jsonb_typeof(shape) is distinct from 'object' or jsonb_typeof(shape -> 'steps') is distinct from 'array' then
        raise exception 'flow "%": the shape is not an object with an array "steps"', flow_slug using errcode = 'PF004';
    end if;
    for v_step in select jsonb_array_elements(shape -> 'steps') loop
        if jsonb_typeof(v_step -> 'slug') is distinct from 'string'
            or jsonb_typeof(v_step -> 'stepType') is distinct from 'string'
            or jsonb_typeof(v_step -> 'dependencies') is distinct from 'array'
            or jsonb_typeof(v_step -> 'whenUnmet') is distinct from 'string'
            or jsonb_typeof(v_step -> 'whenExhausted') is distinct from 'string'
            or jsonb_typeof(v_step #> '{requiredInputPattern,defined}') is distinct from 'boolean'
            or jsonb_typeof(v_step #> '{forbiddenInputPattern,defined}') is distinct from 'boolean'
        then
            raise exception 'flow "%": a step of the shape lacks a part or has one of a wrong type', flow_slug using
                errcode = 'PF004',
                hint = 'Each step has slug, stepType, dependencies, whenUnmet, whenExhausted, requiredInputPattern and forbiddenInputPattern.';
        end if;
    end loop;
end
$$;
