-- One readable line per structural difference between the shape that a worker sends and the stored one; options are no part of it.
-- Steps are compared by position, their dependencies as sets. A part that is missing on one side differs from one that is there.
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
            foreach v_part in array array['stepType', 'dependencies', 'whenUnmet', 'whenExhausted', 'requiredInputPattern', 'forbiddenInputPattern'] loop
                if v_sent -> v_part is distinct from v_stored -> v_part then
                    v_lines := v_lines || format('step "%s", %s: %s in the code, %s in the database',
                        v_sent ->> 'slug', v_part, coalesce((v_sent -> v_part)::text, 'nothing'), (v_stored -> v_part)::text);
                end if;
            end loop;
        end if;
    end loop;
    return v_lines;
end
$$;
