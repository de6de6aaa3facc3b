-- One line per structural difference between the shape that a worker sends and the stored one, in
-- the words of the attributes `#[flow]` and `#[step]`; options are no part of it. Steps are
-- compared by position, their dependencies as sets. A part that is missing on one side differs from
-- one that is there; only onElementFailure has a default.
-- Locks: none. Callers: ensure_flow_compiled.
create or replace function pgflow._shape_differences(sent jsonb, stored jsonb) returns text[]
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    v_lines text[] := '{}';
    v_sent jsonb;
    v_stored jsonb;
    v_part text;
    v_word text;
    v_sides text[];
    v_sent_count int := jsonb_array_length(sent -> 'steps');
    v_stored_count int := jsonb_array_length(stored -> 'steps');
begin
    if v_sent_count <> v_stored_count then
        v_lines := v_lines || format('number of steps: %s in the code, %s in the database', v_sent_count, v_stored_count);
    end if;
    for i in 0 .. greatest(v_sent_count, v_stored_count) - 1 loop
        v_sent := sent -> 'steps' -> i;
        v_stored := stored -> 'steps' -> i;
        if v_stored is null then
            v_lines := v_lines || format('step %s: "%s" in the code, missing in the database', i, v_sent ->> 'slug');
        elsif v_sent is null then
            v_lines := v_lines || format('step %s: missing in the code, "%s" in the database', i, v_stored ->> 'slug');
        elsif v_sent ->> 'slug' is distinct from v_stored ->> 'slug' then
            v_lines := v_lines || format('step %s: "%s" in the code, "%s" in the database', i, v_sent ->> 'slug', v_stored ->> 'slug');
        else
            v_sent := jsonb_set(v_sent, '{dependencies}', (
                select coalesce(jsonb_agg(d order by d collate "C"), '[]') from jsonb_array_elements_text(v_sent -> 'dependencies') d
            ));
            if v_sent -> 'stepType' is distinct from v_stored -> 'stepType' or v_sent -> 'dependencies' is distinct from v_stored -> 'dependencies' then
                v_sides := array(
                    select case
                        when x.step ->> 'stepType' = 'map' then 'map = ' || coalesce(x.step #>> '{dependencies,0}', 'input')
                        when x.step -> 'dependencies' = '[]' then 'a root step'
                        else format('depends_on = [%s]', (
                            select string_agg(d, ', ' order by n) from jsonb_array_elements_text(x.step -> 'dependencies') with ordinality as e (d, n)
                        ))
                    end
                    from unnest(array[v_sent, v_stored]) with ordinality as x (step, side)
                    order by x.side
                );
                v_lines := v_lines || format('step "%s": %s in the code, %s in the database', v_sent ->> 'slug', v_sides[1], v_sides[2]);
            end if;
            -- Left out, it is the default.
            v_sides := array[coalesce(v_sent ->> 'onElementFailure', 'fail'), coalesce(v_stored ->> 'onElementFailure', 'fail')];
            if v_sides[1] <> v_sides[2] then
                v_lines := v_lines
                    || format('step "%s", on_element_failure: "%s" in the code, "%s" in the database', v_sent ->> 'slug', v_sides[1], v_sides[2]);
            end if;
            for v_part, v_word in
                select w.part, w.word
                from unnest(
                    array['whenUnmet', 'whenExhausted', 'requiredInputPattern', 'forbiddenInputPattern', 'runsOn'],
                    array['when_unmet', 'when_exhausted', 'if', 'if_not', 'on']
                ) with ordinality as w (part, word, n)
                order by w.n
            loop
                if v_sent -> v_part is distinct from v_stored -> v_part then
                    v_sides := array(
                        select case
                            when x.value is null then 'nothing'
                            when x.value -> 'defined' = 'false' then 'none'
                            else coalesce(x.value -> 'value', x.value)::text
                        end
                        from unnest(array[v_sent -> v_part, v_stored -> v_part]) with ordinality as x (value, side)
                        order by x.side
                    );
                    v_lines := v_lines
                        || format('step "%s", %s: %s in the code, %s in the database', v_sent ->> 'slug', v_word, v_sides[1], v_sides[2]);
                end if;
            end loop;
        end if;
    end loop;
    return v_lines;
end
$$;
