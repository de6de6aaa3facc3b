-- Completes a batch of attempts: the arrays run in parallel, one item each. All or nothing: an error changes no row.
-- Returns one row per item (1-based): completed; failed (a type violation: a step that feeds a map returned no array, which fails its run);
-- stale (the run, step or task is no longer started, or another attempt is the current one: nothing changed). `made_ready`: whether
-- the batch queued new tasks.
-- A NULL output is stored as JSON null. A NULL attempt speaks for whichever is current.
-- The number of statements does not depend on the number of items, but for type violations; each run and step row is touched once.
-- Raises PF003 (unknown task), PF009 (arrays of different lengths).
-- Locks: runs, step states, tasks, queue rows, each sorted. Callers: workers, complete_task.
create or replace function pgflow.complete_tasks(
    run_ids uuid[],
    step_slugs text[],
    task_indexes int[],
    attempts int[],
    outputs jsonb[]
) returns table (item int, outcome text, made_ready boolean)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
#variable_conflict use_column
declare
    v_items int := coalesce(cardinality(complete_tasks.run_ids), 0);
    v_unknown int;
    v_violation record;
    v_failed_items int[] := '{}';
    v_failed_runs uuid[] := '{}';
    v_done_items int[];
    v_done_runs uuid[];
    v_done_slugs text[];
    v_done_indexes int[];
    v_done_queues text[];
    v_done_messages bigint[];
    v_has_violation boolean;
    v_ended_runs uuid[];
    v_ended_slugs text[];
    v_going_on int;
    v_ready boolean := false;
    v_count int;
begin
    if coalesce(cardinality(step_slugs), 0) <> v_items or coalesce(cardinality(task_indexes), 0) <> v_items
        or coalesce(cardinality(attempts), 0) <> v_items or coalesce(cardinality(outputs), 0) <> v_items
    then
        raise exception 'complete_tasks got arrays of different lengths' using errcode = 'PF009', hint = 'Pass one element of each array for each task.';
    end if;
    if v_items = 0 then
        return;
    end if;

    -- Lock, then decide.
    perform from (
        select from pgflow.runs r where r.run_id = any (complete_tasks.run_ids) order by r.run_id for no key update
    ) locked;
    perform from (
        select
        from pgflow.step_states s
        where (s.run_id, s.step_slug) in (
            select i.run_id, i.step_slug from unnest(complete_tasks.run_ids, complete_tasks.step_slugs) as i (run_id, step_slug)
        )
        order by s.run_id, s.step_slug
        for no key update
    ) locked;
    perform from (
        select
        from pgflow.step_tasks t
        where (t.run_id, t.step_slug, t.task_index) in (
            select i.run_id, i.step_slug, i.task_index
            from unnest(complete_tasks.run_ids, complete_tasks.step_slugs, complete_tasks.task_indexes) as i (run_id, step_slug, task_index)
        )
        order by t.run_id, t.step_slug, t.task_index
        for no key update
    ) locked;

    select
        min(i.item) filter (where i.status is null),
        array_agg(i.item order by i.item) filter (where i.is_current),
        array_agg(i.run_id order by i.item) filter (where i.is_current),
        array_agg(i.step_slug order by i.item) filter (where i.is_current),
        array_agg(i.task_index order by i.item) filter (where i.is_current),
        array_agg(i.queue_name order by i.item) filter (where i.is_current),
        array_agg(i.message_id order by i.item) filter (where i.is_current),
        coalesce(bool_or(i.is_current and i.is_violation), false)
    into v_unknown, v_done_items, v_done_runs, v_done_slugs, v_done_indexes, v_done_queues, v_done_messages, v_has_violation
    from (
        select
            i.item, i.run_id, i.step_slug, i.task_index, t.status, t.queue_name, t.message_id,
            r.status = 'started' and s.status = 'started' and t.status = 'started'
                and (i.attempt is null or i.attempt = t.attempts_count)
                -- The current attempt twice in one batch: the first item speaks. A stale one before it must not silence it.
                and row_number() over (
                    partition by i.run_id, i.step_slug, i.task_index, i.attempt is null or i.attempt = t.attempts_count order by i.item
                ) = 1 as is_current,
            d.feeds_map and d.step_type = 'single' and jsonb_typeof(coalesce(i.output, 'null')) <> 'array' as is_violation
        from unnest(complete_tasks.run_ids, complete_tasks.step_slugs, complete_tasks.task_indexes, complete_tasks.attempts, complete_tasks.outputs)
            with ordinality as i (run_id, step_slug, task_index, attempt, output, item)
        left join pgflow.step_tasks t on t.run_id = i.run_id and t.step_slug = i.step_slug and t.task_index = i.task_index
        left join pgflow.step_states s on s.run_id = t.run_id and s.step_slug = t.step_slug
        left join pgflow.runs r on r.run_id = t.run_id
        left join pgflow.steps d on d.flow_slug = r.flow_slug and d.step_slug = t.step_slug
    ) i;

    if v_unknown is not null then
        raise exception 'there is no task "%" [%] in run %', step_slugs[v_unknown], task_indexes[v_unknown], run_ids[v_unknown] using
            errcode = 'PF003',
            hint = 'Its run may have been deleted.';
    end if;

    if v_has_violation then
        for v_violation in
            select i.item, i.run_id, i.step_slug, i.task_index, coalesce(outputs[i.item], 'null') as output, m.step_slug as map_slug
            from unnest(v_done_items, v_done_runs, v_done_slugs, v_done_indexes) as i (item, run_id, step_slug, task_index)
            join pgflow.runs r on r.run_id = i.run_id
            join pgflow.steps d on d.flow_slug = r.flow_slug and d.step_slug = i.step_slug
            join lateral (
                select c.step_slug
                from pgflow.deps e
                join pgflow.steps c on c.flow_slug = e.flow_slug and c.step_slug = e.step_slug
                where e.flow_slug = d.flow_slug and e.dep_slug = d.step_slug and c.step_type = 'map'
                order by c.step_index
                limit 1
            ) m on true
            where d.step_type = 'single' and jsonb_typeof(coalesce(outputs[i.item], 'null')) <> 'array'
            order by i.item
        loop
            continue when v_violation.run_id = any (v_failed_runs);
            perform pgflow._fail_run(
                v_violation.run_id, v_violation.step_slug, v_violation.task_index,
                format('[TYPE_VIOLATION] step "%s" maps over step "%s", which must return an array; it returned %s',
                    v_violation.map_slug, v_violation.step_slug, jsonb_typeof(v_violation.output)),
                v_violation.output
            );
            v_failed_items := v_failed_items || v_violation.item::int;
            v_failed_runs := v_failed_runs || v_violation.run_id;
        end loop;
        select
            array_agg(i.item order by i.item), array_agg(i.run_id order by i.item), array_agg(i.step_slug order by i.item),
            array_agg(i.task_index order by i.item), array_agg(i.queue_name order by i.item), array_agg(i.message_id order by i.item)
        into v_done_items, v_done_runs, v_done_slugs, v_done_indexes, v_done_queues, v_done_messages
        from unnest(v_done_items, v_done_runs, v_done_slugs, v_done_indexes, v_done_queues, v_done_messages)
            as i (item, run_id, step_slug, task_index, queue_name, message_id)
        where i.run_id <> all (v_failed_runs);
    end if;

    if v_done_items is not null then
        update pgflow.step_tasks t
        set status = 'completed', completed_at = greatest(clock_timestamp(), t.started_at), output = coalesce(outputs[i.item], 'null')
        from unnest(v_done_items, v_done_runs, v_done_slugs, v_done_indexes) as i (item, run_id, step_slug, task_index)
        where t.run_id = i.run_id and t.step_slug = i.step_slug and t.task_index = i.task_index;
        get diagnostics v_count = row_count;
        if v_count <> cardinality(v_done_items) then
            raise exception 'completing % tasks changed % rows', cardinality(v_done_items), v_count using errcode = 'PF012';
        end if;

        -- Which steps does this end?
        select
            array_agg(x.run_id order by x.run_id, x.step_slug) filter (where x.remaining_tasks = x.completed),
            array_agg(x.step_slug order by x.run_id, x.step_slug) filter (where x.remaining_tasks = x.completed),
            count(*) filter (where x.remaining_tasks > x.completed)
        into v_ended_runs, v_ended_slugs, v_going_on
        from (
            select s.run_id, s.step_slug, s.remaining_tasks, count(*) as completed
            from unnest(v_done_runs, v_done_slugs) as i (run_id, step_slug)
            join pgflow.step_states s on s.run_id = i.run_id and s.step_slug = i.step_slug
            group by s.run_id, s.step_slug
        ) x;

        if v_going_on > 0 then
            update pgflow.step_states s
            set remaining_tasks = s.remaining_tasks - x.completed
            from (
                select i.run_id, i.step_slug, count(*) as completed
                from unnest(v_done_runs, v_done_slugs) as i (run_id, step_slug)
                group by i.run_id, i.step_slug
            ) x
            where s.run_id = x.run_id and s.step_slug = x.step_slug and s.remaining_tasks > x.completed;
            get diagnostics v_count = row_count;
            if v_count <> v_going_on then
                raise exception 'counting down % steps changed % rows', v_going_on, v_count using errcode = 'PF012';
            end if;
        end if;

        if v_ended_runs is not null then
            update pgflow.step_states s
            set
                status = 'completed',
                completed_at = greatest(clock_timestamp(), s.started_at),
                remaining_tasks = 0,
                output = case
                    when d.step_type = 'map' then (
                        select jsonb_agg(t.output order by t.task_index)
                        from pgflow.step_tasks t
                        where t.run_id = s.run_id and t.step_slug = s.step_slug
                    )
                    else (
                        select t.output
                        from pgflow.step_tasks t
                        where t.run_id = s.run_id and t.step_slug = s.step_slug and t.task_index = 0
                    )
                end
            from unnest(v_ended_runs, v_ended_slugs) as x (run_id, step_slug), pgflow.steps d
            where s.run_id = x.run_id and s.step_slug = x.step_slug and d.flow_slug = s.flow_slug and d.step_slug = s.step_slug;
            get diagnostics v_count = row_count;
            if v_count <> cardinality(v_ended_runs) then
                raise exception 'completing % steps changed % rows', cardinality(v_ended_runs), v_count using errcode = 'PF012';
            end if;
            perform pgflow._settle_steps(v_ended_runs, v_ended_slugs, 'step:completed');
            v_ready := pgflow._advance_runs(array(select distinct u from unnest(v_ended_runs) u order by u));
        end if;

        perform pgflow._archive_messages(v_done_queues, v_done_messages);
    end if;

    return query
    select
        i,
        case when i = any (v_done_items) then 'completed' when i = any (v_failed_items) then 'failed' else 'stale' end,
        v_ready
    from generate_series(1, v_items) i;
end
$$;
