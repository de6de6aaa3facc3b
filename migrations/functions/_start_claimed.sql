-- Starts the queued tasks behind these messages and returns them with all that a handler needs. What is not queued, or is locked by
-- somebody else right now, is left alone. Visibility (effective timeout + 2 s) is part of the claim: unless every message gets
-- it, the whole claim fails with PF008 and nothing has changed. `counted`: whether somebody has counted the read of the messages.
-- Locks: tasks and queue rows, never waiting for a task: whoever holds one is ending or recovering it. Neither run nor step is
-- locked: whatever ends them must take the lock of each active task first, so a task that is still queued under its lock belongs to
-- a step that runs. Callers: claim_tasks, start_tasks.
create or replace function pgflow._start_claimed(worker_id uuid, queue_name text, message_ids bigint[], counted boolean) returns table (
    flow_slug text, run_id uuid, step_slug text, task_index int, attempt int, max_attempts int, timeout int,
    message_id bigint, started_at timestamptz, input jsonb, flow_input jsonb
)
language plpgsql
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
    v_queue text := _start_claimed.queue_name;
    v_run_ids uuid[];
    v_slugs text[];
    v_indexes int[];
    v_messages bigint[];
    v_hidden int[];
    v_flow_input_steps text[];
    v_count int;
begin
    select
        array_agg(x.run_id), array_agg(x.step_slug), array_agg(x.task_index), array_agg(x.message_id), array_agg(least(x.timeout, 2147483645) + 2)
    into v_run_ids, v_slugs, v_indexes, v_messages, v_hidden
    from (
        select t.run_id, t.step_slug, t.task_index, t.message_id, coalesce(d.opt_timeout, f.opt_timeout) as timeout
        from unnest(_start_claimed.message_ids) as m (id)
        -- The limit keeps this a look-up per message, however long the queue is: see claim_tasks.
        cross join lateral (
            select k.flow_slug, k.run_id, k.step_slug, k.task_index, k.message_id
            from pgflow.step_tasks k
            where k.queue_name = v_queue and k.message_id = m.id and k.status = 'queued'
            limit 1
            for no key update skip locked
        ) t
        join pgflow.runs r on r.run_id = t.run_id
        join pgflow.step_states s on s.run_id = t.run_id and s.step_slug = t.step_slug
        join pgflow.flows f on f.flow_slug = t.flow_slug
        join pgflow.steps d on d.flow_slug = t.flow_slug and d.step_slug = t.step_slug
        where r.status = 'started' and s.status = 'started'
        order by t.run_id, t.step_slug, t.task_index
    ) x;
    if v_messages is null then
        return;
    end if;

    update pgflow.step_tasks t
    set status = 'started', started_at = greatest(clock_timestamp(), t.queued_at), attempts_count = t.attempts_count + 1, last_worker_id = _start_claimed.worker_id
    from unnest(v_run_ids, v_slugs, v_indexes) as x (run_id, step_slug, task_index)
    where t.run_id = x.run_id and t.step_slug = x.step_slug and t.task_index = x.task_index;
    get diagnostics v_count = row_count;
    if v_count <> cardinality(v_messages) then
        raise exception 'claiming % tasks changed % rows', cardinality(v_messages), v_count using errcode = 'PF012';
    end if;

    v_count := pgflow._take_messages(
        v_queue,
        v_messages,
        array(select clock_timestamp() + make_interval(secs => h.secs) from unnest(v_hidden) with ordinality as h (secs, n) order by h.n),
        counted
    );
    if v_count <> cardinality(v_messages) then
        raise exception 'queue "%" has % of the % messages that a claim was to hide', v_queue, v_count, cardinality(v_messages) using
            errcode = 'PF008',
            hint = 'Messages of queued tasks were removed from the queue. Nothing was claimed.';
    end if;

    select w.flow_input_steps into v_flow_input_steps from pgflow.workers w where w.worker_id = _start_claimed.worker_id;

    return query
    select
        t.flow_slug, t.run_id, t.step_slug, t.task_index, t.attempts_count,
        coalesce(d.opt_max_attempts, f.opt_max_attempts), coalesce(d.opt_timeout, f.opt_timeout),
        t.message_id, t.started_at,
        case
            when d.step_type = 'map' then t.input
            when d.deps_count = 0 then r.input
            -- No handler takes the text for the object that it expects: the attempt fails.
            else coalesce(
                pgflow._dependency_outputs(t.flow_slug, t.run_id, t.step_slug),
                '"the outputs of the dependencies are together larger than a JSON value can be"'
            )
        end,
        case when (d.step_type = 'map' or d.deps_count > 0) and t.step_slug = any (v_flow_input_steps) then r.input end
    from unnest(v_run_ids, v_slugs, v_indexes) as x (run_id, step_slug, task_index)
    join pgflow.step_tasks t on t.run_id = x.run_id and t.step_slug = x.step_slug and t.task_index = x.task_index
    join pgflow.runs r on r.run_id = t.run_id
    join pgflow.flows f on f.flow_slug = t.flow_slug
    join pgflow.steps d on d.flow_slug = t.flow_slug and d.step_slug = t.step_slug
    order by t.message_id;
end
$$;
