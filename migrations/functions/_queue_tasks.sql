-- Gives steps that were just started their tasks: one task and one message for a single step, one
-- of each per element for a map. A map's list is taken apart here, once. `tasks`: how many that
-- makes.
-- Locks: needs the runs' rows; new tasks and messages are nobody else's yet. Callers:
-- _advance_runs, _start_end_steps.
create or replace function pgflow._queue_tasks(run_ids uuid[], step_slugs text[], tasks bigint) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
    v_batch record;
    v_queues text[] := '{}';
    v_messages bigint[];
    v_created bigint := 0;
    v_count int;
begin
    -- Each row is looked up by itself: see _advance_runs.
    for v_batch in
        select
            d.queue_name, coalesce(d.opt_start_delay, 0) as delay,
            array_agg(d.flow_slug order by x.n, e.task_index) as flow_slugs,
            array_agg(x.run_id order by x.n, e.task_index) as run_ids,
            array_agg(x.step_slug order by x.n, e.task_index) as step_slugs,
            array_agg(e.task_index order by x.n, e.task_index) as task_indexes,
            array_agg(e.element order by x.n, e.task_index) as elements,
            array_agg(
                jsonb_build_object('flow_slug', d.flow_slug, 'run_id', x.run_id, 'step_slug', x.step_slug, 'task_index', e.task_index)
                order by x.n, e.task_index
            ) as messages
        from unnest(_queue_tasks.run_ids, _queue_tasks.step_slugs) with ordinality as x (run_id, step_slug, n)
        cross join lateral (select k.flow_slug, k.input from pgflow.runs k where k.run_id = x.run_id limit 1) r
        cross join lateral (
            select k.flow_slug, k.queue_name, k.opt_start_delay, k.step_type, k.deps_count
            from pgflow.steps k
            where k.flow_slug = r.flow_slug and k.step_slug = x.step_slug
            limit 1
        ) d
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
                        select (
                            select ps.output from pgflow.step_states ps where ps.run_id = x.run_id and ps.step_slug = dd.dep_slug limit 1
                        )
                        from pgflow.deps dd
                        where dd.flow_slug = d.flow_slug and dd.step_slug = x.step_slug
                    )
                end
            ) with ordinality as a (element, n)
        ) e
        group by d.queue_name, coalesce(d.opt_start_delay, 0)
        order by d.queue_name
    loop
        -- What pgmq.send_batch does, whose three layers and whose results, joined to the tasks,
        -- would cost as much as all the rest. Ids are given in the order of the array.
        execute format(
            'with sent as (insert into pgmq.%I (vt, message) select $1, u from unnest($2) u returning msg_id)
             select array_agg(s.msg_id order by s.msg_id) from sent s',
            'q_' || v_batch.queue_name
        ) into v_messages using clock_timestamp() + make_interval(secs => v_batch.delay), v_batch.messages;
        insert into pgflow.step_tasks (flow_slug, run_id, step_slug, task_index, queue_name, message_id, input)
        select t.flow_slug, t.run_id, t.step_slug, t.task_index, v_batch.queue_name, t.message_id, t.element
        from unnest(v_batch.flow_slugs, v_batch.run_ids, v_batch.step_slugs, v_batch.task_indexes, v_messages, v_batch.elements)
            as t (flow_slug, run_id, step_slug, task_index, message_id, element);
        get diagnostics v_count = row_count;
        v_created := v_created + v_count;
        if v_batch.delay = 0 then
            v_queues := v_queues || v_batch.queue_name::text;
        end if;
    end loop;
    if v_created is distinct from tasks then
        raise exception 'starting steps of flow "%" created % tasks instead of %',
            (select r.flow_slug from pgflow.runs r where r.run_id = run_ids[1]), v_created, tasks using errcode = 'PF012';
    end if;

    perform pgflow._wake_workers(v_queues);
    perform pgflow._emit_events(array_fill('step:started'::text, array[cardinality(step_slugs)]), run_ids, step_slugs);
end
$$;
