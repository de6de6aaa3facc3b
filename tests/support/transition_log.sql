-- Records every change of a status, and of an attempt count, in the order in which it happened. Part of every test database, so
-- that any test can ask afterwards how its rows came to be what they are.
create schema test_log;

create table test_log.transitions (
    n bigint generated always as identity primary key,
    kind text not null,
    run_id uuid not null,
    step_slug text,
    task_index int,
    old_status text,
    new_status text not null,
    old_attempts int,
    new_attempts int
);

create function test_log.record() returns trigger language plpgsql as $$
declare
    v_new jsonb := to_jsonb(new);
    v_old jsonb;
    v_kind text := tg_argv[0];
begin
    if tg_op = 'UPDATE' then
        v_old := to_jsonb(old);
    end if;
    -- End steps have transitions of their own.
    if v_kind = 'step' and exists (
        select from pgflow.steps d
        where d.flow_slug = new.flow_slug and d.step_slug = v_new ->> 'step_slug' and d.runs_on is not null
    ) then
        v_kind := 'end step';
    end if;
    insert into test_log.transitions (kind, run_id, step_slug, task_index, old_status, new_status, old_attempts, new_attempts)
    values (
        v_kind, new.run_id, v_new ->> 'step_slug', (v_new ->> 'task_index')::int,
        v_old ->> 'status', new.status, (v_old ->> 'attempts_count')::int, (v_new ->> 'attempts_count')::int
    );
    return null;
end
$$;

create trigger record_insert after insert on pgflow.runs for each row execute function test_log.record('run');
create trigger record_update after update on pgflow.runs for each row
    when (old.status is distinct from new.status) execute function test_log.record('run');
create trigger record_insert after insert on pgflow.step_states for each row execute function test_log.record('step');
create trigger record_update after update on pgflow.step_states for each row
    when (old.status is distinct from new.status) execute function test_log.record('step');
create trigger record_insert after insert on pgflow.step_tasks for each row execute function test_log.record('task');
create trigger record_update after update on pgflow.step_tasks for each row
    when (old.status is distinct from new.status or old.attempts_count is distinct from new.attempts_count)
    execute function test_log.record('task');

-- The messages that are in any queue now.
create function test_log.messages() returns table (queue_name text, message_id bigint) language plpgsql as $$
declare
    v_queue text;
begin
    for v_queue in select m.queue_name from pgmq.meta m loop
        return query execute format('select %L::text, q.msg_id from pgmq.%I q', lower(v_queue), 'q_' || lower(v_queue));
    end loop;
end
$$;

-- The steps that run when a run has ended: invariants of what is part of a run leave them out, I11 has those of their own.
create view test_log.end_steps as select d.flow_slug, d.step_slug, d.runs_on from pgflow.steps d where d.runs_on is not null;

-- One row per broken invariant: which, and what is wrong. Empty when all hold.
create function test_log.violations() returns table (invariant text, what text) language plpgsql as $$
begin
    -- I1: a terminal run has no active task, and no live message of its tasks.
    return query
    select 'I1', format('run %s is %s, task %s[%s] is %s', r.run_id, r.status, t.step_slug, t.task_index, t.status)
    from pgflow.runs r join pgflow.step_tasks t using (run_id)
    where r.status <> 'started' and t.status in ('queued', 'started')
        and (t.flow_slug, t.step_slug) not in (select e.flow_slug, e.step_slug from test_log.end_steps e);
    return query
    select 'I1', format('run %s is %s, message %s of task %s[%s] is live', r.run_id, r.status, t.message_id, t.step_slug, t.task_index)
    from pgflow.runs r join pgflow.step_tasks t using (run_id) join test_log.messages() m using (queue_name, message_id)
    where r.status <> 'started'
        and (t.flow_slug, t.step_slug) not in (select e.flow_slug, e.step_slug from test_log.end_steps e);

    -- I2: a skipped step has no active task.
    return query
    select 'I2', format('step %s of run %s is skipped, its task [%s] is %s', s.step_slug, s.run_id, t.task_index, t.status)
    from pgflow.step_states s join pgflow.step_tasks t using (run_id, step_slug)
    where s.status = 'skipped' and t.status in ('queued', 'started');

    -- I3: a failed run has one failed step, its culprit; no step of it runs on with active tasks (I1), and only failed runs have cancelled tasks.
    return query
    select 'I3', format('failed run %s has %s failed steps', r.run_id, count(s.step_slug))
    from pgflow.runs r left join pgflow.step_states s on s.run_id = r.run_id and s.status = 'failed'
        and (s.flow_slug, s.step_slug) not in (select e.flow_slug, e.step_slug from test_log.end_steps e)
    where r.status = 'failed'
    group by r.run_id having count(s.step_slug) <> 1;
    return query
    select 'I3', format('run %s is %s, but has failed step %s', r.run_id, r.status, s.step_slug)
    from pgflow.runs r join pgflow.step_states s using (run_id)
    where r.status <> 'failed' and s.status = 'failed'
        and (s.flow_slug, s.step_slug) not in (select e.flow_slug, e.step_slug from test_log.end_steps e);
    return query
    select 'I3', format('run %s is %s, but task %s[%s] is cancelled', r.run_id, r.status, t.step_slug, t.task_index)
    from pgflow.runs r join pgflow.step_tasks t using (run_id)
    where r.status <> 'failed' and t.status = 'cancelled';

    -- I4: each active task has exactly one live message in its own queue, and no two tasks share one.
    return query
    select 'I4', format('task %s[%s] of run %s is %s, message %s in queue %s: %s live', t.step_slug, t.task_index, t.run_id, t.status, t.message_id, t.queue_name, count(m.message_id))
    from pgflow.step_tasks t left join test_log.messages() m using (queue_name, message_id)
    where t.status in ('queued', 'started')
    group by t.run_id, t.step_slug, t.task_index having count(m.message_id) <> 1;

    -- I5: counters equal what counting gives.
    return query
    select 'I5', format('run %s: remaining_steps %s, counted %s', r.run_id, r.remaining_steps, c.n)
    from pgflow.runs r
    cross join lateral (
        select count(*) n from pgflow.step_states s
        where s.run_id = r.run_id and s.status not in ('completed', 'skipped')
            and (s.flow_slug, s.step_slug) not in (select e.flow_slug, e.step_slug from test_log.end_steps e)
    ) c
    where r.remaining_steps <> c.n;
    return query
    select 'I5', format('step %s of run %s: remaining_deps %s, counted %s', s.step_slug, s.run_id, s.remaining_deps, c.n)
    from pgflow.step_states s
    cross join lateral (
        select count(*) n from pgflow.deps d join pgflow.step_states p on p.run_id = s.run_id and p.step_slug = d.dep_slug
        where d.flow_slug = s.flow_slug and d.step_slug = s.step_slug and p.status not in ('completed', 'skipped')
    ) c
    where s.remaining_deps <> c.n;
    return query
    select 'I5', format('step %s of run %s (%s): remaining_tasks %s, counted %s', s.step_slug, s.run_id, s.status, s.remaining_tasks, c.n)
    from pgflow.step_states s
    join pgflow.steps d on d.flow_slug = s.flow_slug and d.step_slug = s.step_slug
    cross join lateral (
        select count(*) filter (where t.status <> 'completed' and (d.on_element_failure = 'fail' or t.status <> 'failed')) n, count(*) total
        from pgflow.step_tasks t
        where t.run_id = s.run_id and t.step_slug = s.step_slug
    ) c
    where s.status in ('started', 'completed', 'failed') and s.started_at is not null
        and (s.remaining_tasks is distinct from c.n or s.initial_tasks is distinct from c.total);
    return query
    select 'I5', format('step %s of run %s (%s): failed_tasks %s, counted %s', s.step_slug, s.run_id, s.status, s.failed_tasks, c.n)
    from pgflow.step_states s
    join pgflow.steps d on d.flow_slug = s.flow_slug and d.step_slug = s.step_slug
    cross join lateral (
        select count(*) filter (where d.on_element_failure = 'null' and t.status = 'failed') n
        from pgflow.step_tasks t
        where t.run_id = s.run_id and t.step_slug = s.step_slug
    ) c
    where s.failed_tasks <> c.n;

    -- I6: each terminal transition once; no way out of a terminal status; only the documented transitions.
    return query
    select 'I6', format('%s %s %s[%s] went %s -> %s', x.kind, x.run_id, x.step_slug, x.task_index, x.old_status, x.new_status)
    from test_log.transitions x
    where x.old_status is distinct from x.new_status and (x.kind, coalesce(x.old_status, ''), x.new_status) not in (
        ('run', '', 'started'), ('run', 'started', 'completed'), ('run', 'started', 'failed'),
        ('step', '', 'created'), ('step', 'created', 'started'), ('step', 'created', 'completed'), ('step', 'created', 'skipped'), ('step', 'created', 'failed'),
        ('step', 'started', 'completed'), ('step', 'started', 'failed'), ('step', 'started', 'skipped'),
        ('end step', '', 'started'), ('end step', 'started', 'completed'), ('end step', 'started', 'failed'),
        ('task', '', 'queued'), ('task', 'queued', 'started'), ('task', 'started', 'queued'), ('task', 'started', 'completed'), ('task', 'started', 'failed'),
        ('task', 'queued', 'skipped'), ('task', 'started', 'skipped'), ('task', 'queued', 'cancelled'), ('task', 'started', 'cancelled')
    );
    return query
    select 'I6', format('%s %s %s[%s] became %s %s times', x.kind, x.run_id, x.step_slug, x.task_index, x.new_status, count(*))
    from test_log.transitions x
    where x.new_status not in ('created', 'queued', 'started') and x.old_status is distinct from x.new_status
    group by x.kind, x.run_id, x.step_slug, x.task_index, x.new_status having count(*) > 1;

    -- I7: timestamps are ordered, at most one terminal one (the tables check most of it; this checks across rows).
    return query
    select 'I7', format('step %s of run %s was created before its run started, or ended after it', s.step_slug, s.run_id)
    from pgflow.step_states s join pgflow.runs r using (run_id)
    where s.created_at < r.started_at
        or coalesce(s.completed_at, s.failed_at, s.skipped_at) > coalesce(r.completed_at, r.failed_at)
            and (s.flow_slug, s.step_slug) not in (select e.flow_slug, e.step_slug from test_log.end_steps e);
    return query
    select 'I7', format('step %s of run %s has %s terminal timestamps', s.step_slug, s.run_id, num_nonnulls(s.completed_at, s.failed_at, s.skipped_at))
    from pgflow.step_states s where num_nonnulls(s.completed_at, s.failed_at, s.skipped_at) > 1;
    return query
    select 'I7', format('task %s[%s] of run %s ended after its step', t.step_slug, t.task_index, t.run_id)
    from pgflow.step_tasks t join pgflow.step_states s using (run_id, step_slug)
    where greatest(t.completed_at, t.failed_at) > s.completed_at;

    -- I8: an attempt is counted when a task starts, one at a time, and never taken back: its number is unique.
    return query
    select 'I8', format('task %s %s[%s] went %s -> %s with attempts %s -> %s', x.run_id, x.step_slug, x.task_index, x.old_status, x.new_status, x.old_attempts, x.new_attempts)
    from test_log.transitions x
    where x.kind = 'task' and not case
        when x.old_status is null then x.new_attempts = 0
        when x.old_status = 'queued' and x.new_status = 'started' then x.new_attempts = x.old_attempts + 1
        when x.old_status = 'started' and x.new_status = 'queued' then x.new_attempts = x.old_attempts
        else x.new_attempts = x.old_attempts
    end;

    -- I9: each started task is in a claim: recovery finds it nowhere else.
    return query
    select 'I9', format('task %s[%s] of run %s is started, and in no claim', t.step_slug, t.task_index, t.run_id)
    from pgflow.step_tasks t
    where t.status = 'started' and not exists (
        select from pgflow.claims c, unnest(c.run_ids, c.step_slugs, c.task_indexes) as i (run_id, step_slug, task_index)
        where i.run_id = t.run_id and i.step_slug = t.step_slug and i.task_index = t.task_index
    );

    -- I11: a map that does without elements has the output of each that completed, and a null for each that failed; one did complete.
    return query
    select 'I11', format('step %s of run %s completed with %s, its tasks with %s', s.step_slug, s.run_id, s.output, c.outputs)
    from pgflow.step_states s
    join pgflow.steps d on d.flow_slug = s.flow_slug and d.step_slug = s.step_slug
    cross join lateral (
        select jsonb_agg(case t.status when 'completed' then t.output else 'null' end order by t.task_index) outputs,
            count(*) filter (where t.status = 'completed') completed
        from pgflow.step_tasks t
        where t.run_id = s.run_id and t.step_slug = s.step_slug
    ) c
    where s.status = 'completed' and d.on_element_failure = 'null' and s.initial_tasks > 0
        and (s.output is distinct from c.outputs or c.completed = 0);

    -- I10: beside a task that runs alone nothing runs in its worker.
    return query
    select 'I10', format('task %s[%s] of run %s is to run alone, and %s others are started beside it', t.step_slug, t.task_index, t.run_id, c.n)
    from pgflow.step_tasks t
    cross join lateral (
        select count(*) - 1 as n from pgflow.step_tasks o where o.status = 'started' and o.last_worker_id = t.last_worker_id
    ) c
    where t.status = 'started' and t.runs_alone and c.n > 0;

    -- I11: an end step has a state, of one task, when its run has ended in the way for which it runs, since that end, and no other time. It never
    -- waits, is skipped, or changes what the run says.
    return query
    select 'I11', format('run %s says that it has end steps: %s', r.run_id, r.has_end_steps)
    from pgflow.runs r
    where r.has_end_steps <> exists (select from test_log.end_steps e where e.flow_slug = r.flow_slug);
    return query
    select 'I11', format('run %s is %s, its end step %s (on %s) is %s', r.run_id, r.status, e.step_slug, e.runs_on, coalesce(s.status, 'missing'))
    from pgflow.runs r
    join test_log.end_steps e on e.flow_slug = r.flow_slug
    left join pgflow.step_states s on s.run_id = r.run_id and s.step_slug = e.step_slug
    where (s.run_id is not null) <> (r.status <> 'started' and (e.runs_on = 'end' or r.status <> 'completed'))
        or s.status not in ('started', 'completed', 'failed');
    return query
    select 'I11', format('end step %s of run %s started before the end of its run, or has another number of tasks than 1', s.step_slug, s.run_id)
    from pgflow.step_states s
    join test_log.end_steps e on e.flow_slug = s.flow_slug and e.step_slug = s.step_slug
    join pgflow.runs r on r.run_id = s.run_id
    where s.created_at < coalesce(r.completed_at, r.failed_at)
        or (select count(*) from pgflow.step_tasks t where t.run_id = s.run_id and t.step_slug = s.step_slug) <> 1
        or exists (select from pgflow.step_tasks t where t.run_id = s.run_id and t.step_slug = s.step_slug and t.status in ('skipped', 'cancelled'));
    return query
    select 'I11', format('run %s has the output of end step %s', r.run_id, e.step_slug)
    from pgflow.runs r join test_log.end_steps e on e.flow_slug = r.flow_slug
    where r.output ? e.step_slug;
end
$$;
