-- Takes up to `max_tasks` visible messages off its queue and starts their
-- tasks. Every message is classified before anything changes:
--   queued       its task is waiting: claimed
--   started      its task is running elsewhere, and the message became visible again: hidden until
--                the task's recovery deadline, which repeated reads never push out; no attempt is
--                counted
--   terminal     its task, step or run has ended: archived. Of an end step only task and step
--                count, because its run has always ended
--   unsupported  no task has it, or the task is not this worker's to run, or its body says
--                otherwise: fatal. Nothing is claimed or archived, the worker's function is
--                disabled, and only these rows return (raising would undo the disabling)
--   alone        its task is waiting for its last attempt, for which nothing else may run in the
--                process of its worker (see recover_tasks). A process that runs nothing takes it,
--                and nothing else; else one process makes room for it: claims of its workers hand
--                out nothing until their tasks have ended. The others leave the message hidden for
--                a second
-- Messages are read in the order in which they became visible, which is how PGMQ's index has them:
-- hidden ones cost nothing. A message whose task is locked by another session is left for the next
-- claim, and this one reads past it (see _read_past_locked); so is a fatal answer, with all that
-- was read, while another session holds the function's row. `max_attempts` of a row goes with its
-- `attempt`, which counts all starts: it includes those that do not count, and the one that is made
-- alone. Raises PF007 (unknown or stopped worker), PF008 (visibility), PF009 (max_tasks). A
-- deprecated worker gets nothing.
-- Locks: queue rows, then tasks; last, for a fatal answer, the function's row, and for an attempt
-- alone the workers' rows. It waits for none of them, so it can't be part of a deadlock: a fence
-- holds the function and waits for workers, and a deletion holds workers and waits for tasks and
-- queues.
-- Callers: workers.
create or replace function pgflow.claim_tasks(worker_id uuid, max_tasks int) returns table (
    outcome text, run_id uuid, step_slug text, task_index int, attempt int, max_attempts int, timeout int,
    message_id bigint, read_count int, enqueued_at timestamptz, started_at timestamptz, input jsonb, flow_input jsonb,
    queue_name text, reason text
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
#variable_conflict use_column
declare
    v_worker pgflow.workers;
    v_ids bigint[];
    v_read_counts int[];
    v_enqueued timestamptz[];
    v_bodies jsonb[];
    v_classes text[];
    v_deadlines timestamptz[];
    v_terminal bigint[];
    v_run_ids uuid[];
    v_slugs text[];
    v_indexes int[];
    v_places tid[];
    v_messages bigint[];
    v_timeouts int[];
    v_max_attempts int[];
    v_now timestamptz;
    v_alone bigint;
    v_is_free boolean;
begin
    select w.* into v_worker from pgflow.workers w where w.worker_id = claim_tasks.worker_id;
    if not found or v_worker.stopped_at is not null then
        raise exception 'worker % is %', claim_tasks.worker_id, case when v_worker.stopped_at is null then 'not registered' else 'stopped' end using
            errcode = 'PF007',
            hint = 'Start a new worker: it registers under a new id.';
    end if;
    if max_tasks is null or max_tasks < 1 then
        raise exception 'max_tasks is %; it must be at least 1', max_tasks using
            errcode = 'PF009',
            hint = 'Ask for as many tasks as the worker has room for.';
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

    -- The time is a parameter, so that the index on vt ends the scan at what is hidden. No second
    -- key: it would sort all that is visible.
    v_now := clock_timestamp();
    execute format(
        'select array_agg(m.msg_id), array_agg(m.read_ct), array_agg(m.enqueued_at), array_agg(m.message)
         from (
             select q.msg_id, q.read_ct, q.enqueued_at, q.message
             from pgmq.%I q
             where ' || case when v_alone is null then 'q.vt <= $2' else 'q.msg_id = $3' end || '
             order by q.vt
             limit $1
             for update skip locked
         ) m',
        'q_' || v_worker.queue_name
    ) into v_ids, v_read_counts, v_enqueued, v_bodies using max_tasks, v_now, v_alone;
    if v_ids is null then
        if v_alone is not null then
            perform pgflow._forget_alone(v_worker.worker_id);
        end if;
        return;
    end if;
    -- Reading may have waited for the end of a transaction that replaced the flow, and told its
    -- workers to stop: these are its new messages. Or another worker of the process has begun to
    -- make room.
    if exists (
        select
        from pgflow.workers w
        where w.worker_id = claim_tasks.worker_id
            and (w.deprecated_at is not null or (w.alone_since is not null and w.alone_since is distinct from v_worker.alone_since))
    ) then
        return;
    end if;

    for v_pass in 1..2 loop
        -- Each task is locked, and each row looked up, by itself; the limits see to that. As plain
        -- joins, planned when the tables were small or with statistics from when the queue was
        -- short, this reads the whole backlog, or all that ever was.
        select
            array_agg(m.class),
            -- Past its deadline, a second, so that the task is not read in a tight loop until
            -- recovery takes it.
            array_agg(case when m.deadline > clock_timestamp() then m.deadline else clock_timestamp() + interval '1 second' end),
            array_agg(m.run_id) filter (where m.class = 'queued'),
            array_agg(m.step_slug) filter (where m.class = 'queued'),
            array_agg(m.task_index) filter (where m.class = 'queued'),
            array_agg(m.place) filter (where m.class = 'queued'),
            array_agg(m.id) filter (where m.class = 'queued'),
            array_agg(m.timeout) filter (where m.class = 'queued'),
            array_agg(m.max_attempts) filter (where m.class = 'queued')
        into v_classes, v_deadlines, v_run_ids, v_slugs, v_indexes, v_places, v_messages, v_timeouts, v_max_attempts
        from (
            select
                m.id, m.n, t.run_id, t.step_slug, t.task_index, l.ctid as place, o.timeout,
                least(2147483647, case
                    when l.runs_alone then greatest(o.max_attempts::bigint + l.uncounted_attempts, l.attempts_count + 1)
                    else o.max_attempts::bigint + l.uncounted_attempts
                end)::int as max_attempts,
                t.started_at + make_interval(secs => least(2147483617, o.timeout) + 30) as deadline,
                case
                    when t.run_id is null then 'unsupported: no task has this message'
                    when t.flow_slug <> v_worker.flow_slug then format('unsupported: its task belongs to flow "%s", this worker serves flow "%s"', t.flow_slug, v_worker.flow_slug)
                    when t.step_slug <> v_worker.step_slug then format('unsupported: its task belongs to step "%s", this worker serves step "%s"', t.step_slug, v_worker.step_slug)
                    when o.queue_name <> v_worker.queue_name then format('unsupported: step "%s" is routed to queue "%s"', t.step_slug, o.queue_name)
                    when m.body ->> 'flow_slug' <> t.flow_slug or m.body ->> 'run_id' <> t.run_id::text or m.body ->> 'step_slug' <> t.step_slug
                        or m.body ->> 'task_index' <> t.task_index::text then 'unsupported: its body names another task than the one that it was sent for'
                    when l.run_id is null then 'locked'
                    when t.status not in ('queued', 'started') or s.status <> 'started'
                        or (r.status <> 'started' and o.is_end_step is not true) then 'terminal'
                    when t.status = 'queued' and l.runs_alone and m.id is distinct from v_alone then 'alone'
                    else t.status
                end as class
            from unnest(v_ids, v_bodies) with ordinality as m (id, body, n)
            left join lateral (
                select x.ctid, x.* from pgflow.step_tasks x where x.queue_name = v_worker.queue_name and x.message_id = m.id limit 1 for no key update skip locked
            ) l on true
            -- Locked by somebody else, or not there.
            left join lateral (
                select x.* from pgflow.step_tasks x where l.run_id is null and x.queue_name = v_worker.queue_name and x.message_id = m.id limit 1
            ) e on true
            cross join lateral (
                select
                    coalesce(l.flow_slug, e.flow_slug) as flow_slug, coalesce(l.run_id, e.run_id) as run_id,
                    coalesce(l.step_slug, e.step_slug) as step_slug, coalesce(l.task_index, e.task_index) as task_index,
                    coalesce(l.status, e.status) as status, coalesce(l.started_at, e.started_at) as started_at
                offset 0
            ) t
            left join lateral (select k.status from pgflow.runs k where k.run_id = t.run_id limit 1) r on true
            left join lateral (
                select k.status from pgflow.step_states k where k.run_id = t.run_id and k.step_slug = t.step_slug limit 1
            ) s on true
            left join lateral (
                select k.queue_name, k.timeout, k.max_attempts, k.is_end_step
                from pgflow.step_options k
                where k.flow_slug = t.flow_slug and k.step_slug = t.step_slug
                limit 1
            ) o on true
            -- For all aggregates at once: each would sort by itself.
            order by m.n
        ) m;
        exit when v_pass = 2 or 'locked' <> all (v_classes) or v_alone is not null;
        select
            array_agg(x.id order by x.n), array_agg(x.read_count order by x.n), array_agg(x.enqueued_at order by x.n), array_agg(x.body order by x.n)
        into v_ids, v_read_counts, v_enqueued, v_bodies
        from (
            select c.id, c.read_count, c.enqueued_at, c.body, c.n
            from unnest(v_ids, v_read_counts, v_enqueued, v_bodies, v_classes) with ordinality as c (id, read_count, enqueued_at, body, class, n)
            where c.class <> 'locked'
            union all
            select p.message_id, p.read_count, p.enqueued_at, p.body, max_tasks + row_number() over ()
            from pgflow._read_past_locked(v_worker.queue_name, v_now, v_ids, v_classes, max_tasks) p
        ) x;
        if v_ids is null then
            return;
        end if;
    end loop;

    if exists (select from unnest(v_classes) c where c like 'unsupported%') then
        perform from pgflow.worker_functions w where w.function_name = v_worker.function_name for no key update skip locked;
        -- A worker's row may outlive its function's; then there is nothing to disable.
        if not found and exists (select from pgflow.worker_functions w where w.function_name = v_worker.function_name) then
            return;
        end if;
        perform pgflow._disable_function(
            v_worker.function_name,
            format('unsupported work in queue "%s": message %s: %s', v_worker.queue_name, u.id, substr(u.class, 14))
        )
        from (
            select c.id, c.class from unnest(v_ids, v_classes) as c (id, class) where c.class like 'unsupported%' order by c.id limit 1
        ) u;
        return query
        select
            'unsupported', null::uuid, null::text, null::int, null::int, null::int, null::int,
            c.id, c.read_count, c.enqueued_at, null::timestamptz, null::jsonb, null::jsonb,
            v_worker.queue_name, substr(c.class, 14)
        from unnest(v_ids, v_read_counts, v_enqueued, v_classes) as c (id, read_count, enqueued_at, class)
        where c.class like 'unsupported%'
        order by c.id;
        return;
    end if;

    v_terminal := array(select c.id from unnest(v_ids, v_classes) as c (id, class) where c.class = 'terminal');
    if v_terminal <> '{}' then
        perform pgflow._archive_messages(array_fill(v_worker.queue_name, array[cardinality(v_terminal)]), v_terminal);
    end if;
    if 'started' = any (v_classes) then
        perform pgflow._take_messages(
            v_worker.queue_name,
            array(select c.id from unnest(v_ids, v_classes) with ordinality as c (id, class, n) where c.class = 'started' order by c.n),
            array(select c.deadline from unnest(v_deadlines, v_classes) with ordinality as c (deadline, class, n) where c.class = 'started' order by c.n),
            counted => false
        );
    end if;

    if 'alone' = any (v_classes) then
        select c.message_id, c.is_free into v_alone, v_is_free
        from pgflow._choose_alone(
            v_worker.worker_id, v_worker.queue_name,
            array(select c.id from unnest(v_ids, v_classes) with ordinality as c (id, class, n) where c.class = 'alone' order by c.n)
        ) c;
        if v_is_free then
            return query select * from pgflow.claim_tasks(v_worker.worker_id, 1);
            return;
        elsif v_alone is not null then
            return;
        end if;
        perform pgflow._take_messages(
            v_worker.queue_name,
            array(select c.id from unnest(v_ids, v_classes) as c (id, class) where c.class = 'alone'),
            array(select clock_timestamp() + interval '1 second' from unnest(v_classes) c where c = 'alone'),
            counted => false
        );
    end if;

    if v_messages is null then
        return;
    end if;
    return query
    select
        'claimed', t.run_id, t.step_slug, t.task_index, t.attempt, t.max_attempts_allowed, t.timeout,
        t.message_id, c.read_count + 1, c.enqueued_at, t.started_at, t.input, t.flow_input,
        v_worker.queue_name, null::text
    from pgflow._start_claimed(
        v_worker.worker_id, v_worker.queue_name, v_worker.flow_input_steps, v_run_ids, v_slugs, v_indexes, v_places, v_messages,
        v_timeouts, v_max_attempts, counted => false
    ) t
    join unnest(v_ids, v_read_counts, v_enqueued) as c (id, read_count, enqueued_at) on c.id = t.message_id
    order by t.message_id;
end
$$;
