-- An input of a task, by `kind`: its `element` of a map, the input of its `run`, the `end` of its
-- run, or the outputs of its `dependencies`. One that can't be read or printed is `{"[pgflow:
-- unreadable]": reason}`, which fails the attempt. Two of them fit into one row of an answer (1
-- GB).
-- Locks: none. Callers: _start_claimed.
create or replace function pgflow._readable_input(kind text, flow_slug text, run_id uuid, step_slug text, task_index int) returns jsonb
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    v_what text := case kind when 'element' then 'the element (`item`)' when 'run' then 'the flow''s input'
        when 'end' then 'the end of the run (`end`)' else 'the outputs of the dependencies' end;
    v_input jsonb;
    v_size bigint;
begin
    if kind = 'element' then
        select t.input into v_input
        from pgflow.step_tasks t
        where t.run_id = _readable_input.run_id and t.step_slug = _readable_input.step_slug and t.task_index = _readable_input.task_index;
    elsif kind = 'run' then
        select r.input into v_input from pgflow.runs r where r.run_id = _readable_input.run_id;
    elsif kind = 'end' then
        v_input := pgflow._run_end(_readable_input.run_id);
    else
        v_input := pgflow._dependency_outputs(_readable_input.flow_slug, _readable_input.run_id, _readable_input.step_slug);
        if v_input is null then
            return jsonb_build_object('[pgflow: unreadable]', v_what
                || ' are together larger than a JSON value can be (256 MB); return less, or keep large data elsewhere and return where it lies');
        end if;
    end if;
    v_size := octet_length(v_input::text);
    if v_size > 500000000 then
        return jsonb_build_object('[pgflow: unreadable]', format(
            '%s can''t be handed to a worker: printed as text, it takes %s bytes, and 500000000 is the most', v_what, v_size
        ));
    end if;
    return v_input;
exception
    when program_limit_exceeded then
        return jsonb_build_object('[pgflow: unreadable]', format(
            '%s can''t be handed to a worker: printed as text, it takes more than the 500000000 bytes that are the most', v_what
        ));
    when others then
        return jsonb_build_object('[pgflow: unreadable]', format('%s can''t be handed to a worker: %s (%s)', v_what, sqlerrm, sqlstate));
end
$$;
