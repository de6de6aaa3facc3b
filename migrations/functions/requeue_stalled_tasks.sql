-- Recovers tasks whose worker died: started longer ago than their effective timeout + 30 s, in a step and run that still run. They are queued
-- again and visible at once, at most 3 times; after that, or when its message is gone, the task is out of attempts and its step's
-- when_exhausted decides, so no run hangs for ever. Returns how many were queued again. One call at a time does the work, the others
-- return 0 at once; a call takes at most 1,000 tasks. A task that can't be ended is warned about, and does not keep the others.
-- Started tasks are found through pgflow.claims, of which a call looks at those that are due, oldest first: at most 10,000, and no further one once
-- 200,000 tasks are together. A claim goes when none of its tasks is started; before that never, since a task that is in no claim is never recovered.
-- What starts a task again comes with a claim of its own, so it matters only that the tasks are looked at no earlier than the claims are read.
-- Locks: advisory (0x7067666c, 2) and claims, runs, step states, tasks, skipping what somebody else holds; queue rows. Callers: workers, pg_cron.
create or replace function pgflow.requeue_stalled_tasks() returns int
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
#variable_conflict use_column
declare
    v_claims bigint[];
    v_of_claims bigint[];
    v_run_ids uuid[];
    v_slugs text[];
    v_indexes int[];
    v_starts timestamptz[];
    v_deadlines timestamptz[];
    v_running_claims bigint[];
    v_first_deadlines timestamptz[];
    v_requeues int[];
    v_queues text[];
    v_messages bigint[];
    v_task record;
    v_requeued int;
begin
    if not pg_try_advisory_xact_lock(x'7067666c'::int, 2) then
        return 0;
    end if;

    select array_agg(x.claim_id) into v_claims
    from (
        select d.claim_id, sum(d.tasks) over (order by d.look_at, d.claim_id rows unbounded preceding) - d.tasks as tasks_before
        from (
            select c.claim_id, c.look_at, cardinality(c.run_ids) as tasks
            from pgflow.claims c
            where c.look_at <= now()
            order by c.look_at
            limit 10000
            for update skip locked
        ) d
    ) x
    where x.tasks_before < 200000;
    if v_claims is null then
        return 0;
    end if;
    -- Each started task of these claims, with when it is past its time. Whatever follows goes by that: the tasks of claims that have ended, which may be
    -- all that a busy database has, are read once. The limits keep it a look-up for each.
    select array_agg(c.claim_id), array_agg(i.run_id), array_agg(i.step_slug), array_agg(i.task_index), array_agg(t.started_at),
        array_agg(t.started_at + make_interval(secs => o.timeout::float8 + 30))
    into v_of_claims, v_run_ids, v_slugs, v_indexes, v_starts, v_deadlines
    from pgflow.claims c
    cross join lateral unnest(c.run_ids, c.step_slugs, c.task_indexes) as i (run_id, step_slug, task_index)
    cross join lateral (
        select k.flow_slug, k.started_at
        from pgflow.step_tasks k
        where k.run_id = i.run_id and k.step_slug = i.step_slug and k.task_index = i.task_index and k.status = 'started'
        limit 1
    ) t
    left join lateral (
        select k.timeout from pgflow.step_options k where k.flow_slug = t.flow_slug and k.step_slug = i.step_slug limit 1
    ) o on true
    where c.claim_id = any (v_claims);
    select array_agg(u.claim_id), array_agg(u.deadline) into v_running_claims, v_first_deadlines
    from (
        select x.claim_id, min(x.deadline) as deadline from unnest(v_of_claims, v_deadlines) as x (claim_id, deadline) group by x.claim_id
    ) u;
    -- Hashed, as the other ways of saying it need not be.
    delete from pgflow.claims c
    where c.claim_id = any (v_claims) and c.claim_id not in (select u from unnest(v_running_claims) u);
    if v_running_claims is null then
        return 0;
    end if;
    -- What is past its deadline and is not recovered by this call, whatever the reason, is looked at by the next, behind all that is due longer. A
    -- timeout may be lowered at any time, so no look is put off for long.
    update pgflow.claims c
    set look_at = greatest(now(), least(now() + interval '15 seconds', u.deadline))
    from unnest(v_running_claims, v_first_deadlines) as u (claim_id, deadline)
    where c.claim_id = u.claim_id;

    select
        array_agg(x.run_id), array_agg(x.step_slug), array_agg(x.task_index), array_agg(x.requeued_count),
        array_agg(x.queue_name), array_agg(x.message_id)
    into v_run_ids, v_slugs, v_indexes, v_requeues, v_queues, v_messages
    from (
        -- Oldest first, one by one, each row of another table looked up by its key: the limits see to that. As plain joins, planned when
        -- the tables were small, this reads all runs that ever were, at every call.
        select t.run_id, t.step_slug, t.task_index, t.requeued_count, t.queue_name, t.message_id
        from (
            -- A task that has started more than once may be in several claims.
            select distinct u.run_id, u.step_slug, u.task_index, u.started_at
            from unnest(v_run_ids, v_slugs, v_indexes, v_starts, v_deadlines) as u (run_id, step_slug, task_index, started_at, deadline)
            where u.deadline < now()
            order by u.started_at, u.run_id, u.step_slug, u.task_index
        ) c
        cross join lateral (
            select
            from pgflow.runs k
            where k.run_id = c.run_id and k.status = 'started'
            limit 1
            for no key update skip locked
        ) r
        cross join lateral (
            select
            from pgflow.step_states k
            where k.run_id = c.run_id and k.step_slug = c.step_slug and k.status = 'started'
            limit 1
            for no key update skip locked
        ) s
        cross join lateral (
            select k.*
            from pgflow.step_tasks k
            where k.run_id = c.run_id and k.step_slug = c.step_slug and k.task_index = c.task_index
                and k.status = 'started' and k.started_at = c.started_at
            limit 1
            for no key update skip locked
        ) t
        limit 1000
    ) x;
    if v_run_ids is null then
        return 0;
    end if;

    select pgflow._requeue_tasks(
        array_agg(x.run_id), array_agg(x.step_slug), array_agg(x.task_index), array_agg(x.queue_name), array_agg(x.message_id), stalled => true
    ) into v_requeued
    from unnest(v_run_ids, v_slugs, v_indexes, v_requeues, v_queues, v_messages)
        as x (run_id, step_slug, task_index, requeued_count, queue_name, message_id)
    where x.requeued_count < 3;

    -- What is still started was requeued often enough, or has no message that a worker could read. Raising for the latter would keep
    -- every other task from being recovered, at each call.
    for v_task in
        select t.run_id, t.step_slug, t.task_index, t.requeued_count, t.queue_name
        from unnest(v_run_ids, v_slugs, v_indexes) as x (run_id, step_slug, task_index)
        join pgflow.step_tasks t on t.run_id = x.run_id and t.step_slug = x.step_slug and t.task_index = x.task_index
        where t.status = 'started'
        order by t.run_id, t.step_slug, t.task_index
    loop
        begin
            -- An earlier task of this list may have failed the run, or skipped the step.
            update pgflow.step_tasks t
            set permanently_stalled_at = clock_timestamp()
            where t.run_id = v_task.run_id and t.step_slug = v_task.step_slug and t.task_index = v_task.task_index and t.status = 'started';
            continue when not found;
            perform pgflow._exhaust_task(
                v_task.run_id, v_task.step_slug, v_task.task_index,
                case
                    when v_task.requeued_count < 3 then format('stalled, and its message is gone from queue "%s"', v_task.queue_name)
                    else 'stalled: its workers died 4 times, or never answered'
                end
            );
        exception when others then
            -- One run whose rows contradict each other must not keep all the others from being recovered.
            raise warning 'stalled task "%" [%] of run % could not be ended: % (%)',
                v_task.step_slug, v_task.task_index, v_task.run_id, sqlerrm, sqlstate;
        end;
    end loop;
    return v_requeued;
end
$$;
