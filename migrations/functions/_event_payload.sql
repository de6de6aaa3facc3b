-- The payload of one event: the same keys for a type whoever emits it; what does not apply is null.
-- Locks: none. Callers: _emit_events.
create or replace function pgflow._event_payload(event_type text, run_id uuid, step_slug text) returns jsonb
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    if step_slug is null then
        return (
            select jsonb_build_object(
                'event_type', event_type, 'run_id', r.run_id, 'flow_slug', r.flow_slug, 'status', r.status,
                'input', case when event_type = 'run:started' then r.input end,
                'output', r.output, 'error_message', r.error_message, 'remaining_steps', r.remaining_steps,
                'started_at', r.started_at, 'completed_at', r.completed_at, 'failed_at', r.failed_at
            )
            from pgflow.runs r
            where r.run_id = _event_payload.run_id
        );
    end if;
    return (
        select jsonb_build_object(
            'event_type', event_type, 'run_id', s.run_id, 'flow_slug', s.flow_slug, 'step_slug', s.step_slug, 'status', s.status,
            'output', s.output, 'error_message', s.error_message, 'skip_reason', s.skip_reason,
            'remaining_tasks', s.remaining_tasks, 'remaining_deps', s.remaining_deps,
            'started_at', s.started_at, 'completed_at', s.completed_at, 'failed_at', s.failed_at, 'skipped_at', s.skipped_at
        )
        from pgflow.step_states s
        where s.run_id = _event_payload.run_id and s.step_slug = _event_payload.step_slug
    );
end
$$;
