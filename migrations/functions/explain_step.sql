-- Says why a step of a run is not running, or that it is: one `reason` for programs and one
-- `message` for people, with what they rest on.
--   completed, skipped, failed     it has ended; when a task of it failed, `message` says whether
--                                  that was its last attempt. An attempt before the last that no
--                                  other follows had an error that rules others out, or more
--                                  attempts were allowed later: rows don't tell
--   run_ended                      its run has ended before it; `message` names the step that
--                                  failed the run. Of an end step: the run did not end in the way
--                                  for which it runs
--   waiting_for_run_end            it is an end step, and its run has not ended
--   waiting_for_dependencies       `waiting_for` names them
--   not_advanced                   nothing holds it up, and yet it did not continue: a fault, or
--                                  rows changed manually
--   running                        a worker is at it: `running`, the longest first, 10 at most
--   worker_lost                    its workers have stopped, or have been silent for 6 seconds:
--                                  recovery takes its tasks
--   stalled                        its workers are past their time; recovery takes it
--   message_missing                a waiting task's message is gone from its queue: no worker will
--                                  ever see it
--   start_delay, retry_delay       its next task can be read at `visible_at`
--   postponed                      the same, after attempts that were refused and do not count:
--                                  `postponed`
--   waiting_to_run_alone           its next task's attempts are used up, and the last one ended
--                                  with its worker: it gets one more, for which the process of a
--                                  worker runs nothing else
--   no_worker                      no worker serves its queue: no live worker, or `disabled_reason`
--   waiting_for_worker             a live worker will take it
-- `runs_on` of an end step says for which end it runs; before its run has ended it has no row, and
-- its `status` is `created`. `alone` of a running task says that nothing else runs in its worker's
-- process meanwhile, `build` which build of the application runs it. Of a map with
-- on_element_failure null, `message` also says how many elements have failed without it. `tasks`
-- counts its tasks by status, `live_workers` those of its queue. A worker lives while its heartbeat
-- is newer than 6 seconds. Raises PF002 (unknown run), PF003 (unknown step).
-- Locks: none; waits for whoever drops the queue. Callers: anyone.
create or replace function pgflow.explain_step(run_id uuid, step_slug text) returns jsonb
language plpgsql stable
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
declare
    v_run pgflow.runs;
    v_step pgflow.step_states;
    v_runs_on text;
    v_queue text;
    v_timeout int;
    v_max_attempts int;
    v_waiting_for jsonb;
    v_tasks jsonb;
    v_running jsonb;
    v_overdue int;
    v_lost int;
    v_stopped int;
    v_overdue_at timestamptz;
    v_started int;
    v_queued int;
    v_attempts int;
    v_next record;
    v_postponed jsonb;
    v_visible_at timestamptz;
    v_is_hidden boolean;
    v_live int;
    v_disabled text;
    v_how text;
    v_elements text;
    v_culprit text;
    v_reason text;
    v_message text;
begin
    select r.* into v_run from pgflow.runs r where r.run_id = explain_step.run_id;
    if not found then
        raise exception 'there is no run %', explain_step.run_id using errcode = 'PF002', hint = 'It may have been deleted.';
    end if;
    select s.* into v_step from pgflow.step_states s where s.run_id = v_run.run_id and s.step_slug = explain_step.step_slug;
    v_runs_on := (select d.runs_on from pgflow.steps d where d.flow_slug = v_run.flow_slug and d.step_slug = explain_step.step_slug);
    if v_step.run_id is null and v_runs_on is not null then
        v_step.step_slug := explain_step.step_slug;
        v_step.status := 'created';
    elsif v_step.run_id is null then
        raise exception 'flow "%" has no step "%" in run %', v_run.flow_slug, explain_step.step_slug, v_run.run_id using
            errcode = 'PF003',
            hint = (
                select coalesce('Its steps are ' || string_agg(s.step_slug, ', ' order by s.step_slug) || '.', 'It has no steps.')
                from pgflow.step_states s
                where s.run_id = v_run.run_id
            );
    end if;
    select o.queue_name, o.timeout, o.max_attempts into strict v_queue, v_timeout, v_max_attempts
    from pgflow.step_options o
    where o.flow_slug = v_run.flow_slug and o.step_slug = v_step.step_slug;

    select jsonb_agg(jsonb_build_object('step_slug', p.step_slug, 'status', p.status) order by d.step_index) into v_waiting_for
    from pgflow.deps e
    join pgflow.step_states p on p.run_id = v_run.run_id and p.step_slug = e.dep_slug
    join pgflow.steps d on d.flow_slug = e.flow_slug and d.step_slug = e.dep_slug
    where e.flow_slug = v_run.flow_slug and e.step_slug = v_step.step_slug and p.status not in ('completed', 'skipped');

    select coalesce(jsonb_object_agg(c.status, c.n), '{}') into v_tasks
    from (
        select t.status, count(*) as n
        from pgflow.step_tasks t
        where t.run_id = v_run.run_id and t.step_slug = v_step.step_slug
        group by t.status
    ) c;
    v_queued := coalesce((v_tasks ->> 'queued')::int, 0);
    v_started := coalesce((v_tasks ->> 'started')::int, 0);

    select
        count(*) filter (where x.overdue_at <= clock_timestamp()),
        count(*) filter (where x.overdue_at > clock_timestamp() and not x.is_alive),
        count(*) filter (where x.is_stopped),
        min(x.overdue_at) filter (where x.overdue_at > clock_timestamp()),
        jsonb_agg(
            jsonb_build_object('task_index', x.task_index, 'attempt', x.attempts_count, 'worker_id', x.last_worker_id,
                'started_at', x.started_at, 'overdue_at', x.overdue_at)
                || case when x.runs_alone then '{"alone": true}'::jsonb else '{}' end
                || case when x.build is null then '{}' else jsonb_build_object('build', x.build) end
            order by x.started_at, x.task_index
        ) filter (where x.n <= 10)
    into v_overdue, v_lost, v_stopped, v_overdue_at, v_running
    from (
        select
            t.task_index, t.attempts_count, t.last_worker_id, t.started_at, t.runs_alone, w.build,
            -- As in recover_tasks.
            case
                when w.worker_id is null or w.stopped_at is not null then t.started_at
                else least(
                    greatest(t.started_at + make_interval(secs => v_timeout::float8), a.reported_at) + interval '30 seconds',
                    case when l.worker_id is null then w.last_heartbeat_at + (select i.lost_after from pgflow.installation i where i.singleton) end
                )
            end as overdue_at,
            row_number() over (order by t.started_at, t.task_index) as n,
            l.worker_id is not null as is_alive,
            w.stopped_at is not null as is_stopped
        from pgflow.step_tasks t
        left join pgflow.workers w on w.worker_id = t.last_worker_id
        left join pgflow.overdue_attempts a on a.run_id = t.run_id and a.step_slug = t.step_slug and a.task_index = t.task_index
        left join pgflow.live_workers l on l.worker_id = t.last_worker_id
        where t.run_id = v_run.run_id and t.step_slug = v_step.step_slug and t.status = 'started'
    ) x;

    select count(*) into v_live
    from pgflow.live_workers w
    where w.flow_slug = v_run.flow_slug and w.queue_name = v_queue and w.deprecated_at is null;
    -- The function of whoever served this queue last.
    select case when not wf.enabled then coalesce(wf.disabled_reason, 'no reason was given') end into v_disabled
    from pgflow.workers w
    join pgflow.worker_functions wf on wf.function_name = w.function_name
    where w.flow_slug = v_run.flow_slug and w.queue_name = v_queue
    order by w.started_at desc
    limit 1;

    if v_step.failed_tasks > 0 then
        v_elements := case
            when v_step.initial_tasks = 1 then 'its only element failed'
            when v_step.failed_tasks = v_step.initial_tasks then format('all of its %s elements failed', v_step.initial_tasks)
            else format('%s of its %s elements failed', v_step.failed_tasks, v_step.initial_tasks)
        end;
    end if;
    if v_step.failed_tasks > 0 and v_step.failed_tasks = v_step.initial_tasks then
        v_how := v_elements;
    elsif v_step.failed_tasks = 0 and (v_step.status = 'failed' or v_step.skip_reason = 'handler_failed') then
        -- One, since the first to fail permanently ends the step. None when a condition failed it.
        select format(
            case
                when t.permanently_stalled_at is not null and t.runs_alone then '%1$s stalled for good at attempt %2$s, in which it ran alone'
                when t.permanently_stalled_at is not null then '%1$s stalled for good at attempt %2$s'
                -- An output that is no list was no refusal.
                when t.postponed_count > 0 and t.output is null then '%1$s was given up after it had only been postponed: %4$s, since %5$s'
                when t.attempts_count - t.uncounted_attempts < v_max_attempts then '%1$s failed for good at attempt %2$s of %3$s'
                when t.attempts_count = 1 then '%1$s failed at its only attempt'
                when t.uncounted_attempts = 0 then '%1$s failed at the last of its %2$s attempts'
                else '%1$s failed at the last of its %6$s attempts that count'
            end,
            case v_step.initial_tasks when 1 then 'its task' else 'its task ' || t.task_index end, t.attempts_count,
            v_max_attempts::bigint + t.uncounted_attempts,
            case t.postponed_count when 1 then 'once' else t.postponed_count || ' times' end, t.postponed_since,
            t.attempts_count - t.uncounted_attempts
        ) into v_how
        from pgflow.step_tasks t
        where t.run_id = v_run.run_id and t.step_slug = v_step.step_slug and t.status = 'failed'
        order by t.task_index
        limit 1;
    elsif v_run.status = 'failed' then
        select s.step_slug into v_culprit
        from pgflow.step_states s
        join pgflow.steps d on d.flow_slug = s.flow_slug and d.step_slug = s.step_slug
        where s.run_id = v_run.run_id and s.status = 'failed' and d.runs_on is null
        order by s.failed_at
        limit 1;
    end if;

    if v_step.status = 'completed' then
        v_reason := 'completed';
        v_message := format('It completed at %s.', v_step.completed_at);
    elsif v_step.status = 'skipped' then
        v_reason := 'skipped';
        v_message := format('It was skipped at %s: %s.', v_step.skipped_at, case v_step.skip_reason
            when 'condition_unmet' then 'its condition was not met'
            when 'handler_failed' then coalesce(v_how, 'its task failed for good')
            else 'a step that it depends on was skipped'
        end);
    elsif v_step.status = 'failed' then
        v_reason := 'failed';
        v_message := case
            when v_runs_on is null then format('It failed at %s, and its run with it: %s.', v_step.failed_at,
                coalesce(v_how, case when v_step.started_at is null then 'its condition was not met' else 'what it returned is too large' end))
            else format('It failed at %s: %s. Its run had %s before, and stays as it is.', v_step.failed_at, v_how, v_run.status)
        end;
    elsif v_runs_on is not null and v_step.run_id is null and v_run.status = 'started' then
        v_reason := 'waiting_for_run_end';
        v_message := case v_runs_on
            when 'failure' then 'It runs if the run fails; the run has not ended.'
            else 'It runs when the run has ended; the run has not ended.'
        end;
    elsif v_runs_on is not null and v_step.run_id is null then
        v_reason := 'run_ended';
        v_message := format('It runs if the run fails; the run %s.', v_run.status);
    elsif v_run.status <> 'started' and v_runs_on is null then
        v_reason := 'run_ended';
        v_message := case
            when v_culprit is null then format('Its run %s before it could end.', v_run.status)
            else format('Step "%s" failed the run before this step had %s.', v_culprit, case v_step.status when 'created' then 'started' else 'ended' end)
        end;
    elsif v_step.status = 'created' and v_waiting_for is not null then
        v_reason := 'waiting_for_dependencies';
        v_message := format('It waits for %s.', (
            select string_agg(format('%s (%s)', w ->> 'step_slug', w ->> 'status'), ', ' order by n)
            from jsonb_array_elements(v_waiting_for) with ordinality as x (w, n)
        ));
    elsif v_step.status = 'created' then
        v_reason := 'not_advanced';
        v_message := 'All that it depends on has ended, and yet it was not started: its rows were changed by hand, or this is a fault of pgflow.';
    elsif v_lost > 0 and v_lost = v_started - v_overdue then
        v_reason := 'worker_lost';
        v_message := format(
            'Its workers have not been heard of for 6 seconds. If they have died, recovery takes its tasks from %s on, while a worker of any flow runs.',
            v_overdue_at
        );
    elsif v_stopped > 0 and v_stopped = v_started then
        v_reason := 'worker_lost';
        v_message := 'Its worker has stopped without giving its work back. Recovery takes it within seconds, while a worker of any flow runs.';
    elsif v_started > v_overdue then
        v_reason := 'running';
        v_message := case
            when v_step.initial_tasks = 1 then 'Its task is running.'
            else format('%s of its %s tasks %s running.', v_started, v_step.initial_tasks, case v_started when 1 then 'is' else 'are' end)
        end;
    elsif v_overdue > 0 then
        v_reason := 'stalled';
        v_message := case
            when v_step.initial_tasks = 1 then 'Its task is past its time: its worker died, or does not answer.'
            when v_overdue = 1 then format('1 of its %s tasks is past its time: its worker died, or does not answer.', v_step.initial_tasks)
            else format('%s of its %s tasks are past their time: their workers died, or do not answer.', v_overdue, v_step.initial_tasks)
        end || ' Recovery deals with that, every 5 seconds while a worker runs.';
    elsif v_queued = 0 then
        v_reason := 'not_advanced';
        v_message := 'None of its tasks waits or runs, and yet it has not ended: its rows were changed by hand, or this is a fault of pgflow.';
    else
        begin
            -- The limit keeps this a look-up per task, however long the queue is: see claim_tasks.
            execute format(
                'select t.attempts_count, q.vt as visible_at, q.vt > clock_timestamp() as is_hidden,
                     t.postponed_count, t.postponed_since, t.error_message, t.runs_alone
                 from pgflow.step_tasks t
                 cross join lateral (select m.vt from pgmq.%I m where m.msg_id = t.message_id limit 1) q
                 where t.run_id = $1 and t.step_slug = $2 and t.status = ''queued'' and t.queue_name = $3
                 order by q.vt, t.task_index
                 limit 1',
                'q_' || v_queue
            ) into v_next using v_run.run_id, v_step.step_slug, v_queue;
            v_attempts := v_next.attempts_count;
            v_visible_at := v_next.visible_at;
            v_is_hidden := v_next.is_hidden;
            if v_next.postponed_count > 0 then
                v_postponed := jsonb_build_object('times', v_next.postponed_count, 'since', v_next.postponed_since, 'cause', v_next.error_message);
            end if;
        exception when undefined_table then
            -- Dropped, perhaps while this waited for it.
            v_visible_at := null;
        end;
        if v_visible_at is null then
            v_reason := 'message_missing';
            v_message := case
                when v_step.initial_tasks = 1 then format('Its task waits, but its message is gone from queue "%s": somebody removed it.', v_queue)
                when v_queued = 1 then format('1 of its %s tasks waits, but its message is gone from queue "%s": somebody removed it.', v_step.initial_tasks, v_queue)
                else format('%s of its %s tasks wait, but their messages are gone from queue "%s": somebody removed them.', v_queued, v_step.initial_tasks, v_queue)
            end;
        elsif v_is_hidden and v_postponed is not null then
            v_reason := 'postponed';
            v_message := format('It was postponed %s, since %s, next at %s: %s',
                case v_next.postponed_count when 1 then 'once' else v_next.postponed_count || ' times' end,
                v_next.postponed_since, v_visible_at, v_next.error_message);
        elsif v_next.runs_alone and v_live > 0 then
            v_reason := 'waiting_to_run_alone';
            v_message := 'The attempts of its task are used up, and the last one ended with its worker. It waits for one more, for which a worker runs'
                ' nothing else.';
        elsif v_is_hidden then
            v_reason := case when v_attempts = 0 then 'start_delay' else 'retry_delay' end;
            v_message := format(case v_reason when 'start_delay' then 'Its start is delayed until %s.' else 'An attempt failed; the next one may start at %s.' end, v_visible_at);
        elsif v_live = 0 then
            v_reason := 'no_worker';
            v_message := format('It waits in queue "%s", which no live worker serves%s.', v_queue, coalesce('; its worker function is disabled: ' || v_disabled, ''));
        else
            v_reason := 'waiting_for_worker';
            v_message := format('It waits in queue "%s", which %s.', v_queue,
                case v_live when 1 then 'a live worker serves' else v_live || ' live workers serve' end);
        end if;
    end if;

    if v_elements is not null and v_how is null then
        v_message := format('%s %s%s: null.', v_message, upper(left(v_elements, 1)), substr(v_elements, 2));
    end if;

    return jsonb_build_object(
        'run_id', v_run.run_id, 'flow_slug', v_run.flow_slug, 'step_slug', v_step.step_slug, 'run_status', v_run.status, 'status', v_step.status,
        'reason', v_reason, 'message', v_message, 'skip_reason', v_step.skip_reason, 'error_message', v_step.error_message,
        'waiting_for', coalesce(v_waiting_for, '[]'), 'tasks', v_tasks, 'running', coalesce(v_running, '[]'),
        'visible_at', v_visible_at,
        'queue_name', v_queue, 'live_workers', v_live, 'disabled_reason', v_disabled
    ) || case when v_runs_on is null then '{}'::jsonb else jsonb_build_object('runs_on', v_runs_on) end
    || case when v_postponed is null then '{}'::jsonb else jsonb_build_object('postponed', v_postponed) end;
end
$$;
