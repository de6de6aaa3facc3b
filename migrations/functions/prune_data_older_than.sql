-- Removes the runs that ended longer ago than `retention`, with their steps, tasks and messages
-- (waiting or archived), and the workers that stopped that long ago; a worker that never said so
-- counts once it has been silent for a day as well. One call is one batch: at most `max_runs` runs,
-- and no further run once 100,000 tasks are together. A run stays while one of its end steps is in
-- progress. Returns how many runs it removed: call it again until that is 0. A removed run's id is
-- free again: start_flow with it starts a new run. Raises PF009 (a retention that is missing or
-- negative, max_runs below 1).
-- Locks: runs, skipping what another session holds; tasks, step states, queue rows; workers,
-- skipping again. Callers: operators, a scheduler.
create or replace function pgflow.prune_data_older_than(retention interval, max_runs int default 1000) returns int
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
declare
    v_cutoff timestamptz;
    v_run_ids uuid[];
    v_queues text[];
    v_messages bigint[];
    v_group record;
    v_count int;
begin
    -- The time that it comes to now: a month is less than 30 days in February.
    if retention is null or retention < interval '0' or now() - least(retention, interval '1000 years') > now() then
        raise exception 'the retention is %; it must be an interval of 0 or more', coalesce(retention::text, 'null') using
            errcode = 'PF009',
            hint = 'For example interval ''30 days''.';
    end if;
    if max_runs is null or max_runs < 1 then
        raise exception 'max_runs is %; it must be at least 1', coalesce(max_runs::text, 'null') using
            errcode = 'PF009',
            hint = 'Leave it out for 1,000.';
    end if;
    -- No run is older, and no timestamp is out of range.
    v_cutoff := now() - least(retention, interval '1000 years');

    select array_agg(x.run_id order by x.run_id) into v_run_ids
    from (
        select
            o.run_id,
            sum(o.tasks) over (order by o.ended_at, o.run_id rows unbounded preceding) - o.tasks as tasks_before
        from (
            select r.run_id, r.ended_at, (select coalesce(sum(s.initial_tasks), 0) from pgflow.step_states s where s.run_id = r.run_id) as tasks
            from (
                select e.run_id, coalesce(e.completed_at, e.failed_at) as ended_at
                from pgflow.runs e
                where e.status <> 'started' and coalesce(e.completed_at, e.failed_at) < v_cutoff
                    and not (e.has_end_steps and exists (
                        select
                        from pgflow.steps d
                        join pgflow.step_states s on s.run_id = e.run_id and s.step_slug = d.step_slug
                        where d.flow_slug = e.flow_slug and d.runs_on is not null and s.status = 'started'
                    ))
                order by coalesce(e.completed_at, e.failed_at)
                limit prune_data_older_than.max_runs
                for update skip locked
            ) r
        ) o
    ) x
    where x.tasks_before < 100000;

    if v_run_ids is not null then
        with gone as (
            delete from pgflow.step_tasks t where t.run_id = any (v_run_ids) returning t.queue_name, t.message_id
        )
        select array_agg(g.queue_name), array_agg(g.message_id) into v_queues, v_messages
        from gone g
        where g.message_id is not null;
        delete from pgflow.step_states s where s.run_id = any (v_run_ids);
        delete from pgflow.runs r where r.run_id = any (v_run_ids);
        get diagnostics v_count = row_count;
        if v_count <> cardinality(v_run_ids) then
            raise exception 'removing % runs changed % rows', cardinality(v_run_ids), v_count using errcode = 'PF012';
        end if;

        for v_group in
            select m.queue_name, array_agg(m.message_id order by m.message_id) as ids
            from unnest(v_queues, v_messages) as m (queue_name, message_id)
            group by m.queue_name
            order by m.queue_name
        loop
            -- A queue that somebody dropped has taken its messages along.
            if to_regclass(format('pgmq.%I', 'q_' || v_group.queue_name)) is not null then
                execute format('delete from pgmq.%I q where q.msg_id = any ($1)', 'q_' || v_group.queue_name) using v_group.ids;
            end if;
            if to_regclass(format('pgmq.%I', 'a_' || v_group.queue_name)) is not null then
                execute format('delete from pgmq.%I a where a.msg_id = any ($1)', 'a_' || v_group.queue_name) using v_group.ids;
            end if;
        end loop;
    end if;

    -- Never waiting: whoever deletes a flow holds its workers, and waits for its runs.
    delete from pgflow.workers w
    where w.worker_id = any (array(
        select x.worker_id
        from pgflow.workers x
        where x.stopped_at < v_cutoff
            or (x.stopped_at is null and x.last_heartbeat_at < v_cutoff and x.last_heartbeat_at < now() - interval '1 day')
        for update skip locked
    ));
    return coalesce(cardinality(v_run_ids), 0);
end
$$;
