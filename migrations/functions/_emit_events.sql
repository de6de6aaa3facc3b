-- Tells listeners about transitions, after the rows have changed; one payload layout for each event
-- type, read from the rows.
-- Level off: nothing. runs: run:completed and run:failed. all: the other run and step events too.
-- Sink: realtime.send where that function exists; else pg_notify on channel pgflow with ids only.
-- Events are hints: one that can't be sent is left out, with a warning where the sink failed, and
-- never fails the transaction that does the work. `event_types`, `run_ids` and `step_slugs` run in
-- parallel; a run event has no step slug.
-- Locks: none (a notification takes a database-wide lock when the transaction commits).
-- Callers: start_flows, complete_tasks, _queue_tasks, _settle_steps, _fail_run, _fail_end_step.
create or replace function pgflow._emit_events(event_types text[], run_ids uuid[], step_slugs text[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    v_level text;
    v_event record;
begin
    -- `where`: callers forbid sequential scans, and a plan that can do no other is dear enough to
    -- be compiled (JIT).
    select i.event_level into v_level from pgflow.installation i where i.singleton;
    if v_level = 'off' or (v_level = 'runs' and not event_types && array['run:completed', 'run:failed']) then
        return;
    end if;

    if to_regprocedure('realtime.send(jsonb,text,text,boolean)') is null then
        -- A queue that some session does not read would make the commit fail once it is full: see
        -- _wake_workers.
        if pg_notification_queue_usage() >= 0.5 then
            return;
        end if;
        -- One statement for all, as the text that a jsonb would have: slugs need no escaping.
        perform pg_notify('pgflow', concat(
            '{"run_id": "', e.run_id, '"', ', "step_slug": "' || e.step_slug || '"', ', "event_type": "', e.event_type, '"}'
        ))
        from (
            select u.event_type, u.run_id, u.step_slug
            from unnest(_emit_events.event_types, _emit_events.run_ids, _emit_events.step_slugs)
                with ordinality as u (event_type, run_id, step_slug, n)
            where v_level = 'all' or u.event_type in ('run:completed', 'run:failed')
            order by u.n
        ) e;
        return;
    end if;

    for v_event in
        select e.event_type, e.run_id, e.step_slug
        from unnest(_emit_events.event_types, _emit_events.run_ids, _emit_events.step_slugs) with ordinality as e (event_type, run_id, step_slug, n)
        where v_level = 'all' or e.event_type in ('run:completed', 'run:failed')
        order by e.n
    loop
        begin
            execute 'select realtime.send($1, $2, $3, false)' using
                pgflow._event_payload(v_event.event_type, v_event.run_id, v_event.step_slug),
                case when v_event.step_slug is null then v_event.event_type
                    else 'step:' || v_event.step_slug || ':' || split_part(v_event.event_type, ':', 2) end,
                'pgflow:run:' || v_event.run_id;
        exception when others then
            raise warning 'event % of run % could not be sent: % (%)', v_event.event_type, v_event.run_id, sqlerrm, sqlstate;
        end;
    end loop;
end
$$;
