-- What follows when steps were completed or skipped, each once: their dependents wait for fewer dependencies, map dependents learn
-- their size, the runs have fewer steps left.
-- A map's size is the length of a single source's output, the number of tasks of a map source, and 0 when the source was skipped.
-- Locks: needs the runs' rows; takes the dependents' step states. Callers: complete_tasks, _complete_taskless_steps, _skip_steps.
create or replace function pgflow._settle_steps(run_ids uuid[], step_slugs text[], event_type text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
    v_count int;
    v_runs int;
begin
    perform from (
        select
        from pgflow.step_states c
        where (c.run_id, c.step_slug) in (
            select p.run_id, d.step_slug
            from unnest(_settle_steps.run_ids, _settle_steps.step_slugs) as p (run_id, step_slug)
            join pgflow.runs r on r.run_id = p.run_id
            join pgflow.deps d on d.flow_slug = r.flow_slug and d.dep_slug = p.step_slug
        )
        order by c.run_id, c.step_slug
        for no key update
    ) locked;

    update pgflow.step_states c
    set
        remaining_deps = c.remaining_deps - x.settled,
        initial_tasks = coalesce(c.initial_tasks, x.size)
    from (
        select
            p.run_id, d.step_slug, count(*)::int as settled,
            -- A map has one source; every other dependent has its size already.
            max(case when cd.step_type = 'map' then
                case
                    when ps.status = 'skipped' then 0
                    when pd.step_type = 'map' then ps.initial_tasks
                    else jsonb_array_length(ps.output)
                end
            end) as size
        from unnest(_settle_steps.run_ids, _settle_steps.step_slugs) as p (run_id, step_slug)
        join pgflow.step_states ps on ps.run_id = p.run_id and ps.step_slug = p.step_slug
        join pgflow.deps d on d.flow_slug = ps.flow_slug and d.dep_slug = ps.step_slug
        join pgflow.steps pd on pd.flow_slug = d.flow_slug and pd.step_slug = d.dep_slug
        join pgflow.steps cd on cd.flow_slug = d.flow_slug and cd.step_slug = d.step_slug
        group by p.run_id, d.step_slug
    ) x
    where c.run_id = x.run_id and c.step_slug = x.step_slug;

    update pgflow.runs r
    set remaining_steps = r.remaining_steps - x.settled
    from (
        select p.run_id, count(*)::int as settled
        from unnest(_settle_steps.run_ids, _settle_steps.step_slugs) as p (run_id, step_slug)
        group by p.run_id
    ) x
    where r.run_id = x.run_id;
    get diagnostics v_count = row_count;
    select count(distinct u) into v_runs from unnest(_settle_steps.run_ids) u;
    if v_count <> v_runs then
        raise exception 'settling steps of % runs changed % runs', v_runs, v_count using errcode = 'PF012';
    end if;

    perform pgflow._emit_events(array_fill(event_type, array[cardinality(step_slugs)]), run_ids, step_slugs);
end
$$;
