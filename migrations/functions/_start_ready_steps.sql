-- Starts every step that is ready: one task and one message for a single step, one of each per element for a map. A map's list is
-- taken apart here, once. Conditions have been evaluated and empty maps completed before.
-- Locks: needs the runs' rows; takes step states; new tasks and messages are nobody else's yet. Callers: _advance_runs.
create or replace function pgflow._start_ready_steps(run_ids uuid[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
    v_run_ids uuid[];
    v_slugs text[];
    v_expected bigint;
    v_created bigint := 0;
    v_count int;
    v_batch record;
    v_queues text[] := '{}';
begin
    select array_agg(x.run_id), array_agg(x.step_slug), sum(x.initial_tasks) into v_run_ids, v_slugs, v_expected
    from (
        select s.run_id, s.step_slug, s.initial_tasks
        from pgflow.step_states s
        join pgflow.runs r on r.run_id = s.run_id
        where s.run_id = any (_start_ready_steps.run_ids)
            and s.status = 'created' and s.remaining_deps = 0 and s.initial_tasks > 0 and r.status = 'started'
        order by s.run_id, s.step_slug
        for no key update of s
    ) x;
    if v_run_ids is null then
        return;
    end if;

    update pgflow.step_states s
    set status = 'started', started_at = greatest(clock_timestamp(), s.created_at), remaining_tasks = s.initial_tasks
    from unnest(v_run_ids, v_slugs) as x (run_id, step_slug)
    where s.run_id = x.run_id and s.step_slug = x.step_slug;

    for v_batch in
        select
            d.queue_name, coalesce(d.opt_start_delay, 0) as delay,
            array_agg(x.run_id order by x.n, e.task_index) as run_ids,
            array_agg(x.step_slug order by x.n, e.task_index) as step_slugs,
            array_agg(e.task_index order by x.n, e.task_index) as task_indexes,
            array_agg(e.element order by x.n, e.task_index) as elements,
            array_agg(
                jsonb_build_object('flow_slug', d.flow_slug, 'run_id', x.run_id, 'step_slug', x.step_slug, 'task_index', e.task_index)
                order by x.n, e.task_index
            ) as messages
        from unnest(v_run_ids, v_slugs) with ordinality as x (run_id, step_slug, n)
        join pgflow.runs r on r.run_id = x.run_id
        join pgflow.steps d on d.flow_slug = r.flow_slug and d.step_slug = x.step_slug
        cross join lateral (
            select 0 as task_index, null::jsonb as element
            where d.step_type = 'single'
            union all
            select (a.n - 1)::int, a.element
            from jsonb_array_elements(
                case
                    when d.step_type <> 'map' then null
                    when d.deps_count = 0 then r.input
                    else (
                        select ps.output
                        from pgflow.deps dd
                        join pgflow.step_states ps on ps.run_id = x.run_id and ps.step_slug = dd.dep_slug
                        where dd.flow_slug = d.flow_slug and dd.step_slug = d.step_slug
                    )
                end
            ) with ordinality as a (element, n)
        ) e
        group by d.queue_name, coalesce(d.opt_start_delay, 0)
        order by d.queue_name
    loop
        insert into pgflow.step_tasks (flow_slug, run_id, step_slug, task_index, queue_name, message_id, input)
        select t.message ->> 'flow_slug', t.run_id, t.step_slug, t.task_index, v_batch.queue_name, m.msg_id, t.element
        from unnest(v_batch.run_ids, v_batch.step_slugs, v_batch.task_indexes, v_batch.elements, v_batch.messages)
            with ordinality as t (run_id, step_slug, task_index, element, message, n)
        join pgmq.send_batch(v_batch.queue_name, v_batch.messages, v_batch.delay) with ordinality as m (msg_id, n) on m.n = t.n;
        get diagnostics v_count = row_count;
        v_created := v_created + v_count;
        if v_batch.delay = 0 then
            v_queues := v_queues || v_batch.queue_name::text;
        end if;
    end loop;
    if v_created <> v_expected then
        raise exception 'starting steps of flow "%" created % tasks instead of %',
            (select r.flow_slug from pgflow.runs r where r.run_id = v_run_ids[1]), v_created, v_expected using errcode = 'PF012';
    end if;

    perform pgflow._wake_workers(v_queues);
    perform pgflow._emit_events(array_fill('step:started'::text, array[cardinality(v_slugs)]), v_run_ids, v_slugs);
end
$$;
