-- The names of a flow's step queues, in the order of its steps: flow__step, or flow__index when
-- that is over 47 characters. Names are lower case, never cut and never hashed. The slugs have been
-- checked. Raises PF010 when a step has no name that fits; for a flow slug over 44 characters there
-- is none for any step.
-- Locks: none. Callers: _queue_routes.
create or replace function pgflow._step_queue_names(flow_slug text, step_slugs text[]) returns text[]
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
    v_names text[] := '{}';
    v_slug text;
    v_readable text;
    v_fallback text;
begin
    foreach v_slug in array step_slugs loop
        v_readable := lower((flow_slug || '__' || v_slug) collate "C");
        v_fallback := lower((flow_slug || '__' || cardinality(v_names)) collate "C");
        if length(v_readable) <= 47 then
            v_names := v_names || v_readable;
        elsif length(v_fallback) <= 47 then
            v_names := v_names || v_fallback;
        elsif length(flow_slug) > 44 then
            raise exception 'flow "%" can''t have a queue per step: its slug has % characters, and at most 44 leave room for a step', flow_slug, length(flow_slug) using
                errcode = 'PF010',
                hint = 'Use a shorter slug, or one queue for the whole flow.';
        else
            raise exception 'step "%" of flow "%" gets no queue: "%" has % characters and "%" has %; the limit is 47',
                v_slug, flow_slug, v_readable, length(v_readable), v_fallback, length(v_fallback) using
                errcode = 'PF010',
                hint = 'Use a shorter slug for the flow or the step, or one queue for the whole flow.';
        end if;
    end loop;
    return v_names;
end
$$;
