-- Recovers one batch of tasks whose attempts nobody works on any more. A started task of a run and
-- step that still run (of an end step: whose step still runs) is recovered
--   at once                  when its worker has stopped, or was removed;
--   after `lost_after`       of silence from its worker (pgflow.installation). Only while the
--                            database has been up, and some worker has been heard of without a
--                            break, for as long: a database that was away for everybody must not
--                            recover everybody's tasks. `trust_silence` does without that worker:
--                            an operator knows that none lives;
--   timeout + 30 s           after its start, or 30 s after its worker last reported that it still
--                            runs. A worker that was just heard of again after a silence first gets
--                            `lost_after` to report, and one that is silent is waited for like any
--                            that may be lost, unless no worker is heard of at all.
-- The attempt counts like one that failed. While attempts are left the task is queued again,
-- visible at once. One whose attempts are used up, and whose last one ended with its worker, gets
-- one more, for which nothing else runs in its worker's process (see claim_tasks): what brings a
-- process down is found out, and what ran beside it completes. Not where max_attempts is 1, which
-- means at most once. Otherwise, or when its message is gone, the task is out of attempts and its
-- step's when_exhausted decides, so no run hangs forever. Returns how many were queued again, how
-- many ended, and whether more is due now: then call it again. One call at a time does the work;
-- the others return at once. A batch is the claims that are due, oldest look first (at most 10,000
-- of them, and no further one once 200,000 tasks are together), until 1,000 of their tasks are to
-- be recovered. What a call can't recover, because somebody holds it or because it can't be ended
-- (a warning says so), is put 5 seconds behind. Started tasks are found through pgflow.claims. A
-- claim is removed when none of its tasks is started, and never before: a task that is in no claim
-- is never recovered. What starts a task again comes with a claim of its own.
-- Locks: advisory (0x7067666c, 2); workers that are lost, claims, runs, step states and tasks,
-- skipping what another session holds; queue rows. Callers: workers, operators,
-- requeue_stalled_tasks.
create or replace function pgflow.recover_tasks(trust_silence boolean default false) returns table (requeued int, ended int, more boolean)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
-- Whoever holds a message, or a whole queue, keeps only its own tasks from being recovered.
set lock_timeout = '1s'
as $$
#variable_conflict use_column
declare
    c_tasks constant int := 1000;
    c_claims constant int := 10000;
    c_looks constant int := 200000;
    v_now timestamptz := clock_timestamp();
    v_lost_after interval := (select i.lost_after from pgflow.installation i where i.singleton);
    v_is_up boolean;
    v_is_heard boolean;
    v_is_served boolean;
    v_lost uuid[];
    v_claims bigint[];
    v_is_cut boolean;
    v_running bigint[];
    v_due int[];
    v_first timestamptz[];
    v_chosen bigint[];
    v_of_claims bigint[];
    v_run_ids uuid[];
    v_slugs text[];
    v_indexes int[];
    v_starts timestamptz[];
    v_causes text[];
    v_deadlines timestamptz[];
    v_fates text[];
    v_queues text[];
    v_messages bigint[];
    v_queue record;
    v_held text[] := '{}';
    v_task record;
begin
    requeued := 0;
    ended := 0;
    more := false;
    if not pg_try_advisory_xact_lock(x'7067666c'::int, 2) then
        return next;
        return;
    end if;

    v_is_up := pg_postmaster_start_time() <= v_now - v_lost_after;
    select count(*) > 0, v_is_up and (trust_silence or coalesce(bool_or(w.heard_since <= v_now - v_lost_after), false)) into v_is_served, v_is_heard
    from pgflow.workers w
    where w.stopped_at is null and w.last_heartbeat_at > v_now - v_lost_after / 2;
    if v_is_heard then
        -- The claims of whoever is newly lost are due now, whatever they were to wait for.
        with silent as (
            select w.worker_id
            from pgflow.workers w
            where w.stopped_at is null and w.lost_at is null and w.last_heartbeat_at <= v_now - v_lost_after
            for no key update skip locked
        ), lost as (
            update pgflow.workers w
            set lost_at = v_now
            from silent s
            where w.worker_id = s.worker_id
            returning w.worker_id
        )
        select array_agg(l.worker_id) into v_lost from lost l;
        if v_lost is not null then
            perform pgflow._look_at_claims(v_lost);
        end if;
    end if;

    -- So many that their tasks can be looked up in a moment.
    select
        array_agg(x.claim_id order by x.look_at, x.claim_id) filter (where x.before < c_looks),
        count(*) = c_claims or bool_or(x.before >= c_looks)
    into v_claims, v_is_cut
    from (
        select d.claim_id, d.look_at, sum(d.tasks) over (order by d.look_at, d.claim_id rows unbounded preceding) - d.tasks as before
        from (
            select c.claim_id, c.look_at, cardinality(c.run_ids) as tasks
            from pgflow.claims c
            where c.look_at <= v_now
            order by c.look_at
            limit c_claims
            for update skip locked
        ) d
    ) x;
    if v_claims is null then
        return next;
        return;
    end if;
    more := v_is_cut;

    -- Each started task of these claims: why it is to be recovered now, if it is, and else when at
    -- the latest. Whatever follows goes by that: the tasks of claims that have ended, which may be
    -- all that a busy database has, are read once. The limits keep it a look-up for each.
    select
        array_agg(x.claim_id), array_agg(x.run_id), array_agg(x.step_slug), array_agg(x.task_index), array_agg(x.started_at),
        array_agg(x.cause), array_agg(x.deadline)
    into v_of_claims, v_run_ids, v_slugs, v_indexes, v_starts, v_causes, v_deadlines
    from (
        select
            c.claim_id, i.run_id, i.step_slug, i.task_index, t.started_at, d.deadline,
            case
                when w.worker_id is null or w.stopped_at is not null then 'stopped'
                when w.last_heartbeat_at <= v_now - v_lost_after then
                    -- A silent worker that is not marked is held by somebody, see
                    -- worker_heartbeats.
                    case when v_is_heard and w.lost_at is not null then 'lost' when d.deadline <= v_now and v_is_up and not v_is_served then 'late' end
                when d.deadline <= v_now and (w.heard_since <= v_now - v_lost_after or w.heard_since <= w.started_at) then 'late'
            end as cause
        from pgflow.claims c
        cross join lateral unnest(c.run_ids, c.step_slugs, c.task_indexes) as i (run_id, step_slug, task_index)
        cross join lateral (
            select k.flow_slug, k.started_at, k.last_worker_id
            from pgflow.step_tasks k
            where k.run_id = i.run_id and k.step_slug = i.step_slug and k.task_index = i.task_index and k.status = 'started'
            limit 1
        ) t
        left join lateral (
            select k.timeout from pgflow.step_options k where k.flow_slug = t.flow_slug and k.step_slug = i.step_slug limit 1
        ) o on true
        left join lateral (
            select k.worker_id, k.stopped_at, k.last_heartbeat_at, k.heard_since, k.started_at, k.lost_at
            from pgflow.workers k
            where k.worker_id = t.last_worker_id
            limit 1
        ) w on true
        left join lateral (
            select k.reported_at
            from pgflow.overdue_attempts k
            where k.run_id = i.run_id and k.step_slug = i.step_slug and k.task_index = i.task_index
            limit 1
        ) r on true
        cross join lateral (
            select greatest(t.started_at + make_interval(secs => o.timeout::float8), r.reported_at) + interval '30 seconds' as deadline
        ) d
        where c.claim_id = any (v_claims)
    ) x;
    select array_agg(u.claim_id), array_agg(u.due), array_agg(u.deadline) into v_running, v_due, v_first
    from (
        select x.claim_id, count(x.cause)::int as due, min(x.deadline) filter (where x.cause is null) as deadline
        from unnest(v_of_claims, v_causes, v_deadlines) as x (claim_id, cause, deadline)
        group by x.claim_id
    ) u;
    -- A hashed subplan; joins and `<> all` are not hashed here.
    delete from pgflow.claims c
    where c.claim_id = any (v_claims) and c.claim_id not in (select u from unnest(v_running) u);
    if v_running is null then
        return next;
        return;
    end if;

    -- In the order in which they were due; at least one, however much it holds.
    select array_agg(x.claim_id) into v_chosen
    from (
        select r.claim_id, sum(r.due) over (order by c.n rows unbounded preceding) - r.due as before
        from unnest(v_running, v_due) as r (claim_id, due)
        join unnest(v_claims) with ordinality as c (claim_id, n) on c.claim_id = r.claim_id
    ) x
    where x.before < c_tasks;
    more := more or cardinality(v_chosen) < cardinality(v_running);
    -- A timeout may be lowered at any time, so no look is postponed for long.
    update pgflow.claims c
    set look_at = case
        when u.due > 0 then v_now + interval '5 seconds'
        else greatest(v_now + interval '1 second', least(v_now + interval '15 seconds', u.deadline))
    end
    from unnest(v_running, v_due, v_first) as u (claim_id, due, deadline)
    where c.claim_id = u.claim_id and c.claim_id = any (v_chosen);

    select
        array_agg(x.run_id), array_agg(x.step_slug), array_agg(x.task_index), array_agg(x.fate),
        array_agg(x.queue_name), array_agg(x.message_id), array_agg(x.cause)
    into v_run_ids, v_slugs, v_indexes, v_fates, v_queues, v_messages, v_causes
    from (
        -- One by one, each row of another table looked up by its key: the limits see to that. As
        -- plain joins, planned when the tables were small, this reads all runs that ever were, at
        -- every call.
        select
            t.run_id, t.step_slug, t.task_index, t.queue_name, t.message_id, c.cause,
            case
                when t.attempts_count - t.uncounted_attempts < o.max_attempts then 'again'
                when c.cause in ('lost', 'stopped') and o.max_attempts > 1 and not t.runs_alone then 'alone'
                else 'ended'
            end as fate
        from (
            -- A task that has started more than once may be in several claims.
            select distinct u.run_id, u.step_slug, u.task_index, u.started_at, u.cause
            from unnest(v_of_claims, v_run_ids, v_slugs, v_indexes, v_starts, v_causes)
                as u (claim_id, run_id, step_slug, task_index, started_at, cause)
            where u.cause is not null and u.claim_id in (select h from unnest(v_chosen) h)
            order by u.run_id, u.step_slug, u.task_index
        ) c
        cross join lateral (
            select k.status
            from pgflow.runs k
            where k.run_id = c.run_id
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
        cross join lateral (
            select k.max_attempts, k.is_end_step from pgflow.step_options k where k.flow_slug = t.flow_slug and k.step_slug = t.step_slug limit 1
        ) o
        where r.status = 'started' or o.is_end_step
    ) x;
    if v_run_ids is null then
        return next;
        return;
    end if;

    for v_queue in
        select x.queue_name, array_agg(x.run_id) as run_ids, array_agg(x.step_slug) as slugs, array_agg(x.task_index) as indexes,
            array_agg(x.queue_name) as queues, array_agg(x.message_id) as messages, array_agg(x.fate) as fates
        from unnest(v_run_ids, v_slugs, v_indexes, v_fates, v_queues, v_messages)
            as x (run_id, step_slug, task_index, fate, queue_name, message_id)
        where x.fate <> 'ended'
        group by x.queue_name
        order by x.queue_name
    loop
        begin
            if 'alone' = any (v_queue.fates) then
                update pgflow.step_tasks t
                set runs_alone = true
                from unnest(v_queue.run_ids, v_queue.slugs, v_queue.indexes, v_queue.fates) as x (run_id, step_slug, task_index, fate)
                where x.fate = 'alone' and t.run_id = x.run_id and t.step_slug = x.step_slug and t.task_index = x.task_index;
            end if;
            requeued := requeued + pgflow._requeue_tasks(
                v_queue.run_ids, v_queue.slugs, v_queue.indexes, v_queue.queues, v_queue.messages, stalled => true
            );
        exception when lock_not_available then
            v_held := v_held || v_queue.queue_name;
            raise warning '% stalled tasks of queue "%" could not be queued again: somebody holds their messages',
                cardinality(v_queue.messages), v_queue.queue_name;
        end;
    end loop;

    -- What is still started has no attempt left, or no message that a worker could read. Raising
    -- for the latter would keep every other task from being recovered, at each call.
    for v_task in
        select
            t.run_id, t.step_slug, t.task_index, t.attempts_count, t.queue_name, x.cause, w.last_heartbeat_at,
            x.fate = 'ended' as is_used_up, t.runs_alone and x.cause in ('lost', 'stopped') as is_culprit
        from unnest(v_run_ids, v_slugs, v_indexes, v_causes, v_fates) as x (run_id, step_slug, task_index, cause, fate)
        join pgflow.step_tasks t on t.run_id = x.run_id and t.step_slug = x.step_slug and t.task_index = x.task_index
        left join pgflow.workers w on w.worker_id = t.last_worker_id
        where t.status = 'started' and (x.fate = 'ended' or t.queue_name <> all (v_held))
        order by t.run_id, t.step_slug, t.task_index
    loop
        begin
            -- An earlier task of this list may have failed the run, or skipped the step.
            update pgflow.step_tasks t
            set permanently_stalled_at = clock_timestamp()
            where t.run_id = v_task.run_id and t.step_slug = v_task.step_slug and t.task_index = v_task.task_index and t.status = 'started';
            continue when not found;
            perform pgflow._exhaust_task(v_task.run_id, v_task.step_slug, v_task.task_index, format(
                case
                    when not v_task.is_used_up then 'stalled, and its message is gone from queue "%1$s"'
                    when v_task.is_culprit and v_task.cause = 'lost' then
                        'stalled: its worker died during attempt %2$s, in which it ran alone: the input of step "%4$s", task %5$s, brings the process'
                            ' down; last heartbeat at %3$s'
                    when v_task.is_culprit then
                        'stalled: its worker stopped during attempt %2$s, in which it ran alone, without giving the task back: the input of step'
                            ' "%4$s", task %5$s, brings the process down'
                    when v_task.cause = 'lost' then
                        'stalled: its worker died during attempt %2$s, and no other attempt follows; last heartbeat at %3$s'
                    when v_task.cause = 'stopped' then
                        'stalled: its worker stopped during attempt %2$s without giving the task back, and no other attempt follows'
                    else
                        'stalled: attempt %2$s was not reported within its timeout and 30 s more, and no other attempt follows'
                end,
                v_task.queue_name, v_task.attempts_count, v_task.last_heartbeat_at, v_task.step_slug, v_task.task_index
            ));
            ended := ended + 1;
        exception when others then
            -- One run whose rows contradict each other must not keep all the others from being
            -- recovered.
            raise warning 'stalled task "%" [%] of run % could not be ended: % (%)',
                v_task.step_slug, v_task.task_index, v_task.run_id, sqlerrm, sqlstate;
        end;
    end loop;
    return next;
end
$$;
