-- Starts a run for each of the inputs, all or none, with a fixed number of statements. `run_ids`
-- runs parallel to `inputs`; without it, and where it is NULL, a run gets an id that is new and
-- sorts by time (UUID v7). A run_id that exists, with the same input, returns the run as it is and
-- changes nothing. Returns the runs in the order of the inputs. Raises PF001 (a flow that is
-- unknown, or being deleted), PF005 (no input, or not an array that a root map can take), PF009 (an
-- input that can't be printed; arrays of different lengths; a run_id that another flow uses, or
-- that was started with another input).
-- Locks: the flow (shared), its row (shared), runs that exist (shared), the new runs. Callers:
-- clients, start_flow.
create or replace function pgflow.start_flows(flow_slug text, inputs jsonb[], run_ids uuid[] default null) returns setof pgflow.run_record
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
#variable_conflict use_column
declare
    v_flow text := start_flows.flow_slug;
    v_run_ids uuid[];
    v_is_new boolean[];
    v_started uuid[];
    v_bad bigint;
    v_type text;
    v_taken record;
    v_which text;
    v_steps int;
    v_has_end_steps boolean;
    v_root_map text;
    v_refused text;
    v_deletion timestamptz;
    v_count int;
begin
    if run_ids is not null and cardinality(run_ids) is distinct from cardinality(inputs) then
        raise exception 'start_flows got % inputs and % run ids', coalesce(cardinality(inputs), 0), cardinality(run_ids) using
            errcode = 'PF009',
            hint = 'Pass one run id for each input, or none at all.';
    end if;
    if coalesce(cardinality(inputs), 0) = 0 then
        return;
    end if;

    -- Most are short, and need no call.
    perform pgflow._assert_printable(u, 'the input') from unnest(start_flows.inputs) u where pg_column_size(u) > 1024;
    -- So that the flow can't be deleted meanwhile: the new runs refer to it.
    perform pgflow._lock_flow(v_flow, alone => false);
    -- Locked as well: in REPEATABLE READ, that refuses a flow that has changed since.
    perform from pgflow.flows f where f.flow_slug = v_flow for key share;
    if not found then
        raise exception 'flow "%" is not defined in this database', v_flow using
            errcode = 'PF001',
            hint = 'Check the slug; a worker of the flow stores its definition when it starts.';
    end if;
    select d.started_at into v_deletion from pgflow.flow_deletions d where d.flow_slug = v_flow;
    if found then
        perform pgflow._assert_flow_stays(v_flow, v_deletion);
    end if;

    select
        count(*) filter (where s.runs_on is null), count(s.runs_on) > 0,
        min(s.step_slug) filter (where s.step_type = 'map' and s.deps_count = 0)
    into v_steps, v_has_end_steps, v_root_map
    from pgflow.steps s
    where s.flow_slug = v_flow;

    -- What exists already is left out before its input is looked at, and stays until it is
    -- returned.
    select
        array_agg(x.run_id order by x.n),
        array_agg(x.is_new order by x.n),
        min(x.n) filter (where x.is_new and (x.is_missing or (v_root_map is not null and x.refused is not null)))
    into v_run_ids, v_is_new, v_bad
    from (
        select
            u.n, coalesce(u.run_id, pgflow._new_run_id()) as run_id, r.run_id is null as is_new, u.input is null as is_missing,
            -- No call for each of many lists: most are short.
            case
                when v_root_map is null then null
                when jsonb_typeof(u.input) = 'array' and jsonb_array_length(u.input) <= 1000 then null
                else pgflow._map_refusal(u.input)
            end as refused
        from unnest(start_flows.inputs, start_flows.run_ids) with ordinality as u (input, run_id, n)
        left join lateral (select k.run_id from pgflow.runs k where k.run_id = u.run_id limit 1 for key share) r on true
    ) x;
    if v_bad is not null then
        select jsonb_typeof(u.input), pgflow._map_refusal(u.input) into v_type, v_refused from unnest(start_flows.inputs) with ordinality as u (input, n) where u.n = v_bad;
        v_which := case when cardinality(inputs) > 1 then format(' (input %s of %s)', v_bad, cardinality(inputs)) else '' end;
        if v_type is null then
            raise exception 'flow "%" was given no input%', v_flow, v_which using
                errcode = 'PF005',
                hint = 'Pass JSON; for a flow that needs nothing, ''{}''.';
        end if;
        raise exception 'flow "%" needs an array as its input, because step "%" maps over it; it was given %', v_flow, v_root_map,
            case v_type when 'object' then 'an object' when 'null' then 'null' when 'array' then v_refused else 'a ' || v_type end || v_which using
            errcode = 'PF005',
            hint = 'Pass an array: the step has a task for each of its elements. A larger one is started as several runs.';
    end if;

    with inserted as (
        insert into pgflow.runs (run_id, flow_slug, input, remaining_steps, has_end_steps)
        select u.run_id, v_flow, u.input, v_steps, v_has_end_steps
        from unnest(v_run_ids, start_flows.inputs, v_is_new) with ordinality as u (run_id, input, is_new, n)
        where u.is_new
        -- Whoever starts the same runs at once waits for them in the same order.
        order by u.run_id, u.n
        on conflict (run_id) do nothing
        returning run_id
    )
    select array_agg(i.run_id) into v_started from inserted i;

    if coalesce(cardinality(v_started), 0) < cardinality(v_run_ids) then
        select r.run_id, r.flow_slug into v_taken
        from unnest(v_run_ids, start_flows.inputs) with ordinality as u (run_id, input, n)
        cross join lateral (select k.run_id, k.flow_slug, k.input from pgflow.runs k where k.run_id = u.run_id limit 1) r
        where r.flow_slug <> v_flow or r.input <> u.input
        order by r.flow_slug = v_flow, u.n
        limit 1;
        if found and v_taken.flow_slug <> v_flow then
            raise exception 'run % belongs to flow "%", not to flow "%"', v_taken.run_id, v_taken.flow_slug, v_flow using
                errcode = 'PF009',
                hint = 'Use a new run id.';
        elsif found then
            raise exception 'run % of flow "%" exists, and was started with another input', v_taken.run_id, v_flow using
                errcode = 'PF009',
                hint = 'Use a new run id for another input; the same input again returns the run.';
        end if;
    end if;

    if v_started is not null then
        v_count := cardinality(v_started);
        perform pgflow._emit_events(array_fill('run:started'::text, array[v_count]), v_started, array_fill(null::text, array[v_count]));
        if v_steps = 0 then
            update pgflow.runs r
            set status = 'completed', completed_at = greatest(clock_timestamp(), r.started_at)
            where r.run_id = any (v_started);
            perform pgflow._emit_events(array_fill('run:completed'::text, array[v_count]), v_started, array_fill(null::text, array[v_count]));
            if v_has_end_steps then
                perform pgflow._start_end_steps(v_started);
            end if;
        else
            insert into pgflow.step_states (flow_slug, run_id, step_slug, remaining_deps, initial_tasks)
            select
                v_flow, x.run_id, s.step_slug, s.deps_count,
                case
                    when s.step_type = 'single' then 1
                    when s.deps_count = 0 then (select jsonb_array_length(k.input) from pgflow.runs k where k.run_id = x.run_id limit 1)
                end
            from unnest(v_started) with ordinality as x (run_id, n)
            cross join pgflow.steps s
            where s.flow_slug = v_flow and s.runs_on is null
            order by x.n, s.step_slug;
            get diagnostics v_count = row_count;
            if v_count <> v_steps * cardinality(v_started) then
                raise exception 'flow "%" changed while runs were started: it had % steps, and now has %', v_flow, v_steps, v_count / cardinality(v_started) using errcode = 'PF012';
            end if;
            perform pgflow._advance_runs(v_started);
        end if;
    end if;

    return query
    select r.run_id, r.flow_slug, r.status, r.input, r.output, r.error_message, r.remaining_steps,
        r.started_at, r.completed_at, r.failed_at
    from unnest(v_run_ids) with ordinality as u (run_id, n)
    cross join lateral (select k.* from pgflow.runs k where k.run_id = u.run_id limit 1) r
    order by u.n;
end
$$;
