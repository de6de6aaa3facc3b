-- For workers that read their queue by themselves (pgmq.read): claims the queued tasks behind these
-- messages; anything else in the list is not claimable, stays as it is and returns no row. A flow
-- with step queues demands the step, a plain flow none. Raises PF001 (unknown flow), PF003 (unknown
-- step), PF007 (unknown or stopped worker), PF008 (visibility), PF009 (step or queue does not fit
-- the flow, or the worker serves another queue: who drains a flow or looks for live workers goes by
-- that). A deprecated worker gets nothing. A task that is to run alone is claimed alone, as by
-- claim_tasks: until its worker runs nothing else it gets nothing.
-- Locks: tasks, queue rows, as _start_claimed; workers, skipping what another session holds.
-- Callers: workers of other languages.
create or replace function pgflow.start_tasks(
    flow_slug text,
    msg_ids bigint[],
    worker_id uuid,
    queue_name text,
    step_slug text default null
) returns setof pgflow.step_task_record
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
#variable_conflict use_column
declare
    v_flow text := start_tasks.flow_slug;
    v_queue text := start_tasks.queue_name;
    v_step text := start_tasks.step_slug;
    v_mode text;
    v_route text;
    v_worker pgflow.workers;
    v_run_ids uuid[];
    v_slugs text[];
    v_indexes int[];
    v_places tid[];
    v_messages bigint[];
    v_timeouts int[];
    v_max_attempts int[];
    v_waiting bigint[];
    v_alone bigint;
    v_is_free boolean;
begin
    select f.queue_mode into v_mode from pgflow.flows f where f.flow_slug = v_flow;
    if not found then
        raise exception 'flow "%" is not defined in this database', v_flow using
            errcode = 'PF001',
            hint = 'Check the slug; a worker of the flow stores its definition when it starts.';
    end if;
    select w.* into v_worker
    from pgflow.workers w
    where w.worker_id = start_tasks.worker_id and w.stopped_at is null;
    if not found then
        raise exception 'worker % is not registered, or has stopped', start_tasks.worker_id using
            errcode = 'PF007',
            hint = 'Start a new worker: it registers under a new id.';
    end if;
    if v_mode = 'flow' and v_step is not null then
        raise exception 'flow "%" has one queue for all its steps; start_tasks takes no step_slug for it', v_flow using
            errcode = 'PF009',
            hint = 'Leave step_slug out.';
    elsif v_mode = 'step' and v_step is null then
        raise exception 'flow "%" has a queue per step; start_tasks needs the step_slug', v_flow using
            errcode = 'PF009',
            hint = 'Name the step whose queue the messages are from.';
    end if;
    v_route := case
        when v_mode = 'flow' then lower(v_flow collate "C")
        else (select s.queue_name from pgflow.steps s where s.flow_slug = v_flow and s.step_slug = v_step)
    end;
    if v_route is null then
        raise exception 'flow "%" has no step "%"', v_flow, v_step using
            errcode = 'PF003',
            hint = 'Its steps are in pgflow.steps.';
    elsif v_queue is distinct from v_route then
        raise exception 'flow "%" uses queue "%"%, not "%"', v_flow, v_route, coalesce(' for step "' || v_step || '"', ''), v_queue using
            errcode = 'PF009',
            hint = 'A message is claimed under the queue that it was read from.';
    end if;
    if v_worker.queue_name <> v_queue then
        raise exception 'worker % serves queue "%", not "%"', v_worker.worker_id, v_worker.queue_name, v_queue using
            errcode = 'PF009',
            hint = 'Register a worker for each queue that is read.';
    end if;
    if v_worker.deprecated_at is not null then
        return;
    end if;
    if v_worker.alone_message is not null then
        case pgflow._alone_state(v_worker.worker_id)
            when 'wait' then return;
            when 'ready' then v_alone := v_worker.alone_message;
            when 'over' then null;
        end case;
    end if;
    -- Each row is looked up by itself: see claim_tasks.
    select
        array_agg(t.run_id) filter (where t.is_taken), array_agg(t.step_slug) filter (where t.is_taken),
        array_agg(t.task_index) filter (where t.is_taken), array_agg(t.ctid) filter (where t.is_taken),
        array_agg(t.message_id) filter (where t.is_taken), array_agg(o.timeout) filter (where t.is_taken),
        array_agg(least(2147483647, case
            when t.runs_alone then greatest(o.max_attempts::bigint + t.uncounted_attempts, t.attempts_count + 1)
            else o.max_attempts::bigint + t.uncounted_attempts
        end)::int) filter (where t.is_taken),
        array_agg(t.message_id) filter (where not t.is_taken)
    into v_run_ids, v_slugs, v_indexes, v_places, v_messages, v_timeouts, v_max_attempts, v_waiting
    from (select distinct u as id from unnest(msg_ids) u order by u) m
    cross join lateral (
        select
            k.ctid, k.run_id, k.step_slug, k.task_index, k.message_id, k.attempts_count, k.uncounted_attempts, k.runs_alone,
            not k.runs_alone or k.message_id is not distinct from v_alone as is_taken
        from pgflow.step_tasks k
        where k.queue_name = v_queue and k.message_id = m.id and k.flow_slug = v_flow and k.status = 'queued'
            and (v_step is null or k.step_slug = v_step) and (v_alone is null or k.message_id = v_alone)
        limit 1
        for no key update skip locked
    ) t
    cross join lateral (
        select k.timeout, k.max_attempts, k.is_end_step
        from pgflow.step_options k
        where k.flow_slug = v_flow and k.step_slug = t.step_slug
        limit 1
    ) o
    cross join lateral (select from pgflow.runs k where k.run_id = t.run_id and (k.status = 'started' or o.is_end_step) limit 1) r
    cross join lateral (
        select from pgflow.step_states k where k.run_id = t.run_id and k.step_slug = t.step_slug and k.status = 'started' limit 1
    ) s;
    if v_waiting is not null then
        select c.message_id, c.is_free into v_alone, v_is_free from pgflow._choose_alone(v_worker.worker_id, v_queue, v_waiting) c;
        if v_is_free then
            return query select * from pgflow.start_tasks(v_flow, array[v_alone], v_worker.worker_id, v_queue, v_step);
            return;
        elsif v_alone is not null then
            return;
        end if;
    end if;
    if v_messages is null then
        return;
    end if;
    return query
    select t.flow_slug, t.run_id, t.step_slug, t.input, t.message_id, t.task_index, t.flow_input, t.attempt, t.max_attempts_allowed, t.timeout
    from pgflow._start_claimed(
        v_worker.worker_id, v_queue, v_worker.flow_input_steps, v_run_ids, v_slugs, v_indexes, v_places, v_messages,
        v_timeouts, v_max_attempts, counted => true
    ) t;
end
$$;
