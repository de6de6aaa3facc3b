-- Completes a batch of attempts: the arrays run in parallel, one item each. All or nothing: an
-- error changes no row. Returns one row per item (1-based): completed; failed (its run can't
-- continue with it and has failed: a step that feeds a map returned no array, or the elements of a
-- map are together larger than JSON can be); stale (the run, step or task is no longer started, or
-- another attempt is the current one: nothing changed). The run of an end step has ended, so only
-- its step and task count, and its completion does not change the run. `made_ready`: whether the
-- batch queued new tasks, or ended a run that has end steps. A NULL output is stored as JSON null.
-- A NULL attempt speaks for whichever is current. The number of statements does not depend on the
-- number of items, but for type violations; each run and step row is touched once. Raises PF003
-- (unknown task), PF009 (arrays that do not run in parallel: of different lengths, of several
-- dimensions, or not counted from 1).
-- Locks: runs; then, under their locks, step states, tasks, queue rows. Callers: workers,
-- complete_task.
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
    v_done_remaining int[];
    v_done_maps boolean[];
    v_has_violation boolean;
    v_has_end_step boolean;
    v_may_start_end_steps boolean;
    v_after_runs uuid[];
    v_after_slugs text[];
    v_ended_runs uuid[];
    v_ended_slugs text[];
    v_ended_items int[];
    v_ended_maps boolean[];
    v_map_outputs jsonb[];
    v_large_runs uuid[];
    v_large_slugs text[];
    v_going_on int;
    v_ready_runs uuid[];
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
    -- An array of another shape would be read by one item's number and numbered by another's.
    if (array_ndims(run_ids), array_ndims(step_slugs), array_ndims(task_indexes), array_ndims(attempts), array_ndims(outputs),
        array_lower(run_ids, 1), array_lower(step_slugs, 1), array_lower(task_indexes, 1), array_lower(attempts, 1), array_lower(outputs, 1))
        is distinct from (1, 1, 1, 1, 1, 1, 1, 1, 1, 1)
    then
        raise exception 'complete_tasks got arrays that do not run in parallel' using
            errcode = 'PF009',
            hint = 'Give each array one dimension, and count from 1.';
    end if;

    -- Lock, then decide. The run's lock stands for its steps and tasks: whoever changes these holds
    -- it, but for claims, and they change none that is started. Each row is looked up by itself,
    -- here and below, also the one that changes: see _advance_runs.
    perform from (select distinct u as run_id from unnest(complete_tasks.run_ids) u order by u) i
    cross join lateral (select from pgflow.runs k where k.run_id = i.run_id limit 1 for no key update) locked;

    if current_setting('transaction_isolation') <> 'read committed' then
        -- What such a transaction sees may be older than these locks. A claim changes neither run
        -- nor step: it would go unseen, and its result be taken for a stale one. Locking a row that
        -- changed since is refused (40001).
        perform from (
            select distinct i.run_id, i.step_slug, i.task_index
            from unnest(complete_tasks.run_ids, complete_tasks.step_slugs, complete_tasks.task_indexes) as i (run_id, step_slug, task_index)
            order by i.run_id, i.step_slug, i.task_index
        ) i
        cross join lateral (
            select
            from pgflow.step_tasks k
            where k.run_id = i.run_id and k.step_slug = i.step_slug and k.task_index = i.task_index
            limit 1
            for no key update
        ) locked;
    end if;

    select
        min(i.item) filter (where i.status is null),
        array_agg(i.item order by i.item) filter (where i.is_current),
        array_agg(i.run_id order by i.item) filter (where i.is_current),
        array_agg(i.step_slug order by i.item) filter (where i.is_current),
        array_agg(i.task_index order by i.item) filter (where i.is_current),
        array_agg(i.queue_name order by i.item) filter (where i.is_current),
        array_agg(i.message_id order by i.item) filter (where i.is_current),
        array_agg(i.remaining_tasks order by i.item) filter (where i.is_current),
        array_agg(i.is_map order by i.item) filter (where i.is_current),
        coalesce(bool_or(i.is_current and i.is_violation), false),
        coalesce(bool_or(i.is_current and i.is_end_step), false),
        coalesce(bool_or(i.is_current and i.has_end_steps and not i.is_end_step), false)
    into
        v_unknown, v_done_items, v_done_runs, v_done_slugs, v_done_indexes, v_done_queues, v_done_messages, v_done_remaining, v_done_maps,
        v_has_violation, v_has_end_step, v_may_start_end_steps
    from (
        select
            i.item, i.run_id, i.step_slug, i.task_index, t.status, t.queue_name, t.message_id, s.remaining_tasks, d.step_type = 'map' as is_map,
            (r.status = 'started' or d.is_end_step) and s.status = 'started' and t.status = 'started'
                and (i.attempt is null or i.attempt = t.attempts_count)
                -- The current attempt twice in one batch: the first item speaks. A stale one before
                -- it must not silence it.
                and row_number() over (
                    partition by i.run_id, i.step_slug, i.task_index, i.attempt is null or i.attempt = t.attempts_count order by i.item
                ) = 1 as is_current,
            d.feeds_map and d.step_type = 'single' and pgflow._map_refusal(i.output) is not null as is_violation,
            d.is_end_step, r.has_end_steps
        from unnest(complete_tasks.run_ids, complete_tasks.step_slugs, complete_tasks.task_indexes, complete_tasks.attempts, complete_tasks.outputs)
            with ordinality as i (run_id, step_slug, task_index, attempt, output, item)
        left join lateral (
            select k.flow_slug, k.status, k.attempts_count, k.queue_name, k.message_id
            from pgflow.step_tasks k
            where k.run_id = i.run_id and k.step_slug = i.step_slug and k.task_index = i.task_index
            limit 1
        ) t on true
        left join lateral (
            select k.status, k.remaining_tasks from pgflow.step_states k where k.run_id = i.run_id and k.step_slug = i.step_slug limit 1
        ) s on true
        left join lateral (select k.status, k.has_end_steps from pgflow.runs k where k.run_id = i.run_id limit 1) r on true
        left join lateral (
            select k.step_type, k.feeds_map, k.runs_on is not null as is_end_step
            from pgflow.steps k
            where k.flow_slug = t.flow_slug and k.step_slug = i.step_slug
            limit 1
        ) d on true
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
            where d.step_type = 'single' and pgflow._map_refusal(outputs[i.item]) is not null
            order by i.item
        loop
            continue when v_violation.run_id = any (v_failed_runs);
            perform pgflow._fail_run(
                v_violation.run_id, v_violation.step_slug, v_violation.task_index,
                format('[TYPE_VIOLATION] step "%s" maps over step "%s", which must return an array; it returned %s',
                    v_violation.map_slug, v_violation.step_slug, pgflow._map_refusal(v_violation.output)),
                v_violation.output
            );
            v_failed_items := v_failed_items || v_violation.item::int;
            v_failed_runs := v_failed_runs || v_violation.run_id;
        end loop;
        select
            array_agg(i.item order by i.item), array_agg(i.run_id order by i.item), array_agg(i.step_slug order by i.item),
            array_agg(i.task_index order by i.item), array_agg(i.queue_name order by i.item), array_agg(i.message_id order by i.item),
            array_agg(i.remaining_tasks order by i.item), array_agg(i.is_map order by i.item)
        into v_done_items, v_done_runs, v_done_slugs, v_done_indexes, v_done_queues, v_done_messages, v_done_remaining, v_done_maps
        from unnest(
            v_done_items, v_done_runs, v_done_slugs, v_done_indexes, v_done_queues, v_done_messages, v_done_remaining, v_done_maps
        ) as i (item, run_id, step_slug, task_index, queue_name, message_id, remaining_tasks, is_map)
        where i.run_id <> all (v_failed_runs);
    end if;

    if v_done_items is not null then
        update pgflow.step_tasks t
        set status = 'completed', completed_at = greatest(clock_timestamp(), t.started_at), output = coalesce(outputs[i.item], 'null')
        from unnest(v_done_items, v_done_runs, v_done_slugs, v_done_indexes) as i (item, run_id, step_slug, task_index)
        cross join lateral (
            select k.ctid, k.status
            from pgflow.step_tasks k
            where k.run_id = i.run_id and k.step_slug = i.step_slug and k.task_index = i.task_index
            limit 1
        ) k
        -- Not in the look-up, which must not go by an index of started tasks.
        where t.ctid = k.ctid and k.status = 'started';
        get diagnostics v_count = row_count;
        if v_count <> cardinality(v_done_items) then
            raise exception 'completing % tasks changed % rows', cardinality(v_done_items), v_count using errcode = 'PF012';
        end if;

        -- Which steps does this end?
        select
            array_agg(x.run_id order by x.run_id, x.step_slug) filter (where x.remaining_tasks = x.completed),
            array_agg(x.step_slug order by x.run_id, x.step_slug) filter (where x.remaining_tasks = x.completed),
            array_agg(x.item order by x.run_id, x.step_slug) filter (where x.remaining_tasks = x.completed),
            array_agg(x.is_map order by x.run_id, x.step_slug) filter (where x.remaining_tasks = x.completed),
            count(*) filter (where x.remaining_tasks > x.completed)
        into v_ended_runs, v_ended_slugs, v_ended_items, v_ended_maps, v_going_on
        from (
            select
                i.run_id, i.step_slug, min(i.item) as item, min(i.remaining_tasks) as remaining_tasks, bool_or(i.is_map) as is_map,
                count(*) as completed
            from unnest(v_done_items, v_done_runs, v_done_slugs, v_done_remaining, v_done_maps) as i (item, run_id, step_slug, remaining_tasks, is_map)
            group by i.run_id, i.step_slug
        ) x;

        if v_going_on > 0 then
            update pgflow.step_states s
            set remaining_tasks = s.remaining_tasks - x.completed
            from (
                select i.run_id, i.step_slug, count(*) as completed
                from unnest(v_done_runs, v_done_slugs) as i (run_id, step_slug)
                group by i.run_id, i.step_slug
            ) x
            cross join lateral (
                select k.ctid
                from pgflow.step_states k
                where k.run_id = x.run_id and k.step_slug = x.step_slug and k.remaining_tasks > x.completed
                limit 1
            ) k
            where s.ctid = k.ctid;
            get diagnostics v_count = row_count;
            if v_count <> v_going_on then
                raise exception 'counting down % steps changed % rows', v_going_on, v_count using errcode = 'PF012';
            end if;
        end if;

        if true = any (v_ended_maps) then
            -- One whose elements are together too large fails its run, and is no longer among the
            -- steps that this completes.
            select
                array_agg(x.run_id order by x.n) filter (where x.is_kept), array_agg(x.step_slug order by x.n) filter (where x.is_kept),
                array_agg(x.item order by x.n) filter (where x.is_kept), array_agg(x.is_map order by x.n) filter (where x.is_kept),
                array_agg(x.output order by x.n) filter (where x.is_kept),
                array_agg(x.run_id order by x.n) filter (where not x.is_kept), array_agg(x.step_slug order by x.n) filter (where not x.is_kept)
            into v_ended_runs, v_ended_slugs, v_ended_items, v_ended_maps, v_map_outputs, v_large_runs, v_large_slugs
            from (
                select u.*, not u.is_map or u.output is not null as is_kept
                from (
                    select e.*, case when e.is_map then pgflow._map_output(e.run_id, e.step_slug) end as output
                    from unnest(v_ended_runs, v_ended_slugs, v_ended_items, v_ended_maps) with ordinality as e (run_id, step_slug, item, is_map, n)
                    offset 0
                ) u
            ) x;
        end if;

        if v_ended_runs is not null then
            update pgflow.step_states s
            set
                status = 'completed',
                completed_at = greatest(clock_timestamp(), s.started_at),
                remaining_tasks = 0,
                output = case
                    when x.is_map then v_map_outputs[x.n]
                    else coalesce(outputs[x.item], 'null')
                end
            from unnest(v_ended_runs, v_ended_slugs, v_ended_items, v_ended_maps) with ordinality as x (run_id, step_slug, item, is_map, n)
            cross join lateral (
                select k.ctid from pgflow.step_states k where k.run_id = x.run_id and k.step_slug = x.step_slug and k.status = 'started' limit 1
            ) k
            where s.ctid = k.ctid;
            get diagnostics v_count = row_count;
            if v_count <> cardinality(v_ended_runs) then
                raise exception 'completing % steps changed % rows', cardinality(v_ended_runs), v_count using errcode = 'PF012';
            end if;
            if v_has_end_step then
                -- Nothing depends on an end step, and its run is not counted down.
                select
                    array_agg(x.run_id order by x.n) filter (where not d.is_end_step),
                    array_agg(x.step_slug order by x.n) filter (where not d.is_end_step),
                    array_agg(x.run_id order by x.n) filter (where d.is_end_step),
                    array_agg(x.step_slug order by x.n) filter (where d.is_end_step)
                into v_ended_runs, v_ended_slugs, v_after_runs, v_after_slugs
                from unnest(v_ended_runs, v_ended_slugs) with ordinality as x (run_id, step_slug, n)
                cross join lateral (select k.flow_slug from pgflow.runs k where k.run_id = x.run_id limit 1) r
                cross join lateral (
                    select k.runs_on is not null as is_end_step
                    from pgflow.steps k
                    where k.flow_slug = r.flow_slug and k.step_slug = x.step_slug
                    limit 1
                ) d;
                perform pgflow._emit_events(array_fill('step:completed'::text, array[cardinality(v_after_runs)]), v_after_runs, v_after_slugs);
            end if;
            if v_ended_runs is not null then
                v_ready_runs := pgflow._settle_steps(v_ended_runs, v_ended_slugs, 'step:completed');
            end if;
        end if;
        if v_large_runs is not null then
            v_failed_items := v_failed_items || pgflow._fail_large_maps(v_large_runs, v_large_slugs, v_done_items, v_done_runs, v_done_slugs);
        end if;
        if v_ready_runs is not null then
            v_ready := pgflow._advance_runs(v_ready_runs);
        end if;

        perform pgflow._archive_messages(v_done_queues, v_done_messages);
    end if;
    if v_may_start_end_steps and not v_ready then
        v_ready := exists (
            select
            from unnest(run_ids) u
            cross join lateral (select from pgflow.runs k where k.run_id = u and k.status <> 'started' and k.has_end_steps limit 1) r
        );
    end if;

    return query
    select
        i,
        case when i = any (v_failed_items) then 'failed' when i = any (v_done_items) then 'completed' else 'stale' end,
        v_ready
    from generate_series(1, v_items) i;
end
$$;
