-- What follows when steps were completed or skipped, each once: their dependents wait for fewer
-- dependencies, map dependents learn their size, the runs have fewer steps left, and a run without
-- any is finished, whose end steps start. Returns the runs in which a step became ready. A map's
-- size is the length of a single source's output, the number of tasks of a map source, and 0 when
-- the source was skipped. A run's output is the object of its completed leaf steps' outputs, null
-- when all were skipped or there are none. Raises PF009 when a run's output would be larger than
-- JSON can be: the caller fails the run instead, and so does a worker whose output that was.
-- Locks: needs the runs' rows; takes the dependents' step states. Callers: complete_tasks,
-- _fail_element, _complete_taskless_steps, _skip_steps.
create or replace function pgflow._settle_steps(run_ids uuid[], step_slugs text[], event_type text) returns uuid[]
language plpgsql
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
    v_ready uuid[];
    v_finished uuid[];
    v_with_end_steps uuid[];
    v_problem text;
    v_count int;
    v_runs int;
begin
    -- Each row is looked up by itself: see _advance_runs.
    with counted as (
        update pgflow.step_states c
        set
            remaining_deps = c.remaining_deps - x.settled,
            initial_tasks = coalesce(c.initial_tasks, x.size)
        from (
            select
                p.run_id, e.step_slug, count(*)::int as settled,
                -- A map has one source; every other dependent has its size already.
                max(case when e.is_map then
                    case
                        when ps.status = 'skipped' then 0
                        when e.source_is_map then ps.initial_tasks
                        else jsonb_array_length(ps.output)
                    end
                end) as size
            from unnest(_settle_steps.run_ids, _settle_steps.step_slugs) as p (run_id, step_slug)
            cross join lateral (
                select k.flow_slug, k.status, k.initial_tasks, k.output
                from pgflow.step_states k
                where k.run_id = p.run_id and k.step_slug = p.step_slug
                limit 1
            ) ps
            cross join lateral (
                select d.step_slug, cd.step_type = 'map' as is_map, pd.step_type = 'map' as source_is_map
                from pgflow.deps d
                join pgflow.steps pd on pd.flow_slug = d.flow_slug and pd.step_slug = d.dep_slug
                join pgflow.steps cd on cd.flow_slug = d.flow_slug and cd.step_slug = d.step_slug
                where d.flow_slug = ps.flow_slug and d.dep_slug = p.step_slug
                offset 0
            ) e
            group by p.run_id, e.step_slug
        ) x
        cross join lateral (select k.ctid from pgflow.step_states k where k.run_id = x.run_id and k.step_slug = x.step_slug limit 1) k
        where c.ctid = k.ctid
        returning c.run_id, c.remaining_deps, c.status
    )
    select array_agg(distinct c.run_id) into v_ready from counted c where c.remaining_deps = 0 and c.status = 'created';

    perform pgflow._emit_events(array_fill(event_type, array[cardinality(step_slugs)]), run_ids, step_slugs);

    with counted as (
        update pgflow.runs r
        set
            remaining_steps = r.remaining_steps - k.settled,
            status = case when k.is_last then 'completed' else r.status end,
            completed_at = case when k.is_last then greatest(clock_timestamp(), r.started_at) end,
            -- A text is no output, but the reason why there can be none; see below.
            output = case when jsonb_typeof(k.output) <> 'string' then k.output end
        from (
            select
                k.place, x.settled, k.remaining_steps = x.settled as is_last,
                case when k.remaining_steps = x.settled then coalesce(
                    -- Stored in less than 1 MB, they are less than JSON can be, however they are
                    -- compressed.
                    (
                        select jsonb_object_agg(o.step_slug, o.output)
                        from (
                            select s.step_slug, s.output, sum(pg_column_size(s.output)) over () as size
                            from pgflow.step_states s
                            where s.run_id = x.run_id and s.status = 'completed'
                                and not exists (select from pgflow.deps d where d.flow_slug = k.flow_slug and d.dep_slug = s.step_slug)
                        ) o
                        where o.size < 1000000
                    ),
                    pgflow._run_output(k.flow_slug, x.run_id)
                ) end as output
            from (
                select p.run_id, count(*)::int as settled
                from unnest(_settle_steps.run_ids, _settle_steps.step_slugs) as p (run_id, step_slug)
                group by p.run_id
            ) x
            cross join lateral (
                select k.ctid as place, k.flow_slug, k.remaining_steps
                from pgflow.runs k
                where k.run_id = x.run_id and k.status = 'started'
                limit 1
            ) k
            -- Computed once.
            offset 0
        ) k
        where r.ctid = k.place
        returning r.run_id, r.status, r.has_end_steps, case when jsonb_typeof(k.output) = 'string' then k.output #>> '{}' end as problem
    )
    select
        count(*), array_agg(c.run_id order by c.run_id) filter (where c.status = 'completed'),
        array_agg(c.run_id order by c.run_id) filter (where c.status = 'completed' and c.has_end_steps), min(c.problem)
    into v_count, v_finished, v_with_end_steps, v_problem
    from counted c;
    if v_problem is not null then
        raise exception '%', v_problem using errcode = 'PF009', hint = 'Return less, or keep large data elsewhere and return where it lies.';
    end if;
    select count(distinct u) into v_runs from unnest(_settle_steps.run_ids) u;
    if v_count <> v_runs then
        raise exception 'settling steps of % runs changed % runs', v_runs, v_count using errcode = 'PF012';
    end if;
    if v_finished is not null then
        perform pgflow._emit_events(
            array_fill('run:completed'::text, array[cardinality(v_finished)]), v_finished, array_fill(null::text, array[cardinality(v_finished)])
        );
        if v_with_end_steps is not null then
            perform pgflow._start_end_steps(v_with_end_steps);
        end if;
    end if;
    return v_ready;
end
$$;
