-- Starts a run. The same run_id again returns the run that exists and changes nothing.
-- Raises PF001 (unknown flow), PF005 (no input, or not the array that a root map needs), PF009 (run_id used by another flow).
-- Locks: the flow (shared), its row (shared), the new run. Callers: clients, SQL users.
create or replace function pgflow.start_flow(flow_slug text, input jsonb, run_id uuid default null) returns setof pgflow.runs
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
#variable_conflict use_column
declare
    v_flow text := start_flow.flow_slug;
    v_input jsonb := start_flow.input;
    v_run_id uuid := coalesce(start_flow.run_id, gen_random_uuid());
    v_run pgflow.runs;
    v_steps int;
    v_root_map text;
    v_count int;
begin
    if start_flow.run_id is not null then
        select r.* into v_run from pgflow.runs r where r.run_id = v_run_id;
        if found then
            if v_run.flow_slug <> v_flow then
                raise exception 'run % belongs to flow "%", not to flow "%"', v_run_id, v_run.flow_slug, v_flow using
                    errcode = 'PF009',
                    hint = 'Use a new run id.';
            end if;
            return next v_run;
            return;
        end if;
    end if;

    -- So that the flow can't be deleted meanwhile: the new run refers to it.
    perform pgflow._lock_flow(v_flow, alone => false);
    -- Locked as well: in REPEATABLE READ, that refuses a flow that has changed since.
    perform from pgflow.flows f where f.flow_slug = v_flow for key share;
    if not found then
        raise exception 'flow "%" is not defined in this database', v_flow using
            errcode = 'PF001',
            hint = 'Check the slug; a worker of the flow stores its definition when it starts.';
    end if;
    select count(*), min(s.step_slug) filter (where s.step_type = 'map' and s.deps_count = 0)
    into v_steps, v_root_map
    from pgflow.steps s
    where s.flow_slug = v_flow;
    if v_input is null then
        raise exception 'flow "%" was given no input', v_flow using
            errcode = 'PF005',
            hint = 'Pass JSON; for a flow that needs nothing, ''{}''.';
    end if;
    if v_root_map is not null and jsonb_typeof(v_input) <> 'array' then
        raise exception 'flow "%" needs an array as its input, because step "%" maps over it; it was given %', v_flow, v_root_map,
            case jsonb_typeof(v_input) when 'object' then 'an object' when 'null' then 'null' else 'a ' || jsonb_typeof(v_input) end using
            errcode = 'PF005',
            hint = 'Pass an array: the step has a task for each of its elements.';
    end if;

    insert into pgflow.runs (run_id, flow_slug, input, remaining_steps)
    values (v_run_id, v_flow, v_input, v_steps)
    on conflict (run_id) do nothing;
    if not found then
        -- Somebody else started this very run a moment ago, and has committed.
        return query select * from pgflow.start_flow(v_flow, v_input, v_run_id);
        return;
    end if;

    insert into pgflow.step_states (flow_slug, run_id, step_slug, remaining_deps, initial_tasks)
    select
        v_flow, v_run_id, s.step_slug, s.deps_count,
        case
            when s.step_type = 'single' then 1
            when s.deps_count = 0 then jsonb_array_length(v_input)
        end
    from pgflow.steps s
    where s.flow_slug = v_flow
    order by s.step_slug;
    get diagnostics v_count = row_count;
    if v_count <> v_steps then
        raise exception 'flow "%" changed while a run was started: it had % steps, and now has %', v_flow, v_steps, v_count using errcode = 'PF012';
    end if;

    perform pgflow._emit_events(array['run:started'], array[v_run_id], array[null::text]);
    perform pgflow._advance_runs(array[v_run_id]);
    return query select r.* from pgflow.runs r where r.run_id = v_run_id;
end
$$;
