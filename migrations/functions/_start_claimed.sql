-- Starts queued tasks that the caller has locked, and returns them with all that a handler needs.
-- Visibility (effective timeout + 2 s) is part of the claim: unless every message gets it, the
-- whole claim fails with PF008 and nothing has changed. The arrays run in parallel; `places` are
-- where the locked rows lie (ctid), `timeouts` and `max_attempts` the effective ones.
-- `flow_input_steps`: the worker's steps whose handlers also take the flow's input. `counted`:
-- whether somebody has counted the read of the messages. A worker that registered with
-- flow_input_once gets the flow's input once for each run in the claim, in the first of its rows
-- whose step takes it; the `input` of a single root step, which is the same, is then NULL. Whatever
-- the size of a map, its input crosses the network once per claim. An end step's input is the end
-- of its run, see _run_end.
-- Neither run nor step is locked: whatever ends them must take the lock of each active task first,
-- so a task that is still queued under its lock belongs to a step that runs. What starts is written
-- down in pgflow.claims, in the same transaction: recovery finds it there and nowhere else. What
-- can't be read or printed fails its own attempt, and no other's: in a careful claim each such
-- input is `{"[pgflow: unreadable]": reason}`. A claim is careful when an ordinary one failed, or
-- when the setting pgflow.careful_claims is on: an answer can also fail after this function has
-- returned it, when it is sent.
-- Locks: queue rows that the caller's task locks stand for. Callers: claim_tasks, start_tasks.
create or replace function pgflow._start_claimed(
    worker_id uuid, queue_name text, flow_input_steps text[], run_ids uuid[], step_slugs text[], task_indexes int[], places tid[],
    message_ids bigint[], timeouts int[], max_attempts int[], counted boolean
) returns table (
    flow_slug text, run_id uuid, step_slug text, task_index int, attempt int, max_attempts_allowed int, timeout int,
    message_id bigint, started_at timestamptz, input jsonb, flow_input jsonb
)
language plpgsql
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
    v_tasks int := cardinality(_start_claimed.message_ids);
    v_now timestamptz := clock_timestamp();
    v_is_careful boolean := coalesce(current_setting('pgflow.careful_claims', true) = 'on', false);
    v_once boolean := false;
    v_carriers bigint[];
    v_count int;
begin
    v_count := pgflow._take_messages(
        _start_claimed.queue_name,
        message_ids,
        array(
            select v_now + make_interval(secs => least(t.secs, 2147483645) + 2)
            from unnest(timeouts) with ordinality as t (secs, n)
            order by t.n
        ),
        counted
    );
    if v_count <> v_tasks then
        raise exception 'queue "%" has % of the % messages that a claim was to hide', _start_claimed.queue_name, v_count, v_tasks using
            errcode = 'PF008',
            hint = 'Messages of queued tasks were removed from the queue. Nothing was claimed.';
    end if;

    -- At the shortest deadline that any task can have.
    insert into pgflow.claims (worker_id, claimed_at, look_at, run_ids, step_slugs, task_indexes)
    values (
        _start_claimed.worker_id, v_now, v_now + interval '30 seconds',
        _start_claimed.run_ids, _start_claimed.step_slugs, _start_claimed.task_indexes
    );

    if _start_claimed.flow_input_steps <> '{}' then
        v_once := exists (select from pgflow.workers w where w.worker_id = _start_claimed.worker_id and w.flow_input_once);
    end if;
    if v_once then
        v_carriers := array(
            select min(x.message_id)
            from unnest(_start_claimed.run_ids, _start_claimed.step_slugs, _start_claimed.message_ids) as x (run_id, step_slug, message_id)
            where x.step_slug = any (_start_claimed.flow_input_steps)
            group by x.run_id
        );
    end if;

    loop
        begin
            -- Each row is looked up by itself: see _advance_runs.
            return query
            with started as (
                update pgflow.step_tasks t
                set
                    status = 'started',
                    started_at = greatest(v_now, t.queued_at),
                    attempts_count = t.attempts_count + 1,
                    last_worker_id = _start_claimed.worker_id
                from unnest(places, timeouts, max_attempts) as x (place, timeout, max_attempts)
                where t.ctid = x.place and t.status = 'queued'
                returning t.*, x.timeout, x.max_attempts
            )
            select
                t.flow_slug, t.run_id, t.step_slug, t.task_index, t.attempts_count, t.max_attempts, t.timeout, t.message_id, t.started_at,
                case
                    when v_is_careful then pgflow._readable_input(
                        case
                            when d.is_end_step then 'end'
                            when d.step_type = 'map' then 'element'
                            when d.deps_count = 0 then 'run'
                            else 'dependencies'
                        end,
                        t.flow_slug, t.run_id, t.step_slug, t.task_index
                    )
                    when d.is_end_step then pgflow._run_end(t.run_id)
                    when d.step_type = 'map' then t.input
                    when d.deps_count = 0 then case when not v_once then r.input end
                    -- The same without a call, and without a subtransaction, for each task.
                    else (
                        select coalesce(jsonb_object_agg(e.dep_slug, p.output), '{}')
                        from pgflow.deps e
                        cross join lateral (
                            select k.output
                            from pgflow.step_states k
                            where k.run_id = t.run_id and k.step_slug = e.dep_slug and k.status = 'completed'
                            limit 1
                        ) p
                        where e.flow_slug = t.flow_slug and e.step_slug = t.step_slug
                    )
                end,
                case
                    when t.step_slug <> all (flow_input_steps) then null
                    when v_once and not v_is_careful then case when t.message_id = any (v_carriers) then r.input end
                    when d.step_type <> 'map' and d.deps_count = 0 and not d.is_end_step then null
                    when v_is_careful then pgflow._readable_input('run', t.flow_slug, t.run_id, t.step_slug, t.task_index)
                    else r.input
                end
            from started t
            cross join lateral (
                select k.step_type, k.deps_count, k.runs_on is not null as is_end_step
                from pgflow.steps k
                where k.flow_slug = t.flow_slug and k.step_slug = t.step_slug
                limit 1
            ) d
            cross join lateral (select k.input from pgflow.runs k where k.run_id = t.run_id limit 1) r
            order by t.message_id;
            get diagnostics v_count = row_count;
            exit;
        exception when program_limit_exceeded then
            -- Nothing was returned: the sort comes last. And nothing has started.
            if v_is_careful then
                raise;
            end if;
            v_is_careful := true;
        end;
    end loop;
    if v_count <> v_tasks then
        raise exception 'claiming % tasks changed % rows', v_tasks, v_count using errcode = 'PF012';
    end if;
end
$$;
