-- Skips a step that has not ended, and with `cascade` everything that depends on it, each step
-- visited once. The step gets `reason` and `error_message`, the others the reason
-- dependency_skipped. Active tasks of what is skipped become `skipped`, their messages are
-- archived.
-- Returns how many steps were skipped: 0 when the step had ended already.
-- Locks: needs the run's row; takes step states, tasks, queue rows. Callers: _resolve_conditions,
-- _exhaust_task, _fail_element.
create or replace function pgflow._skip_steps(run_id uuid, step_slug text, reason text, error_message text, cascade boolean) returns int
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    v_run_id uuid := _skip_steps.run_id;
    v_trigger text := _skip_steps.step_slug;
    v_slugs text[];
    v_queues text[];
    v_messages bigint[];
    v_count int;
begin
    -- Locked by slug, told in the order of the definition: a step before what depends on it.
    select array_agg(x.step_slug order by x.step_index) into v_slugs
    from (
        with recursive affected (flow_slug, step_slug) as (
            select r.flow_slug, v_trigger from pgflow.runs r where r.run_id = v_run_id
            union
            select d.flow_slug, d.step_slug
            from affected a
            join pgflow.deps d on d.flow_slug = a.flow_slug and d.dep_slug = a.step_slug
            where _skip_steps.cascade
        )
        select s.step_slug, d.step_index
        from pgflow.step_states s
        join pgflow.steps d on d.flow_slug = s.flow_slug and d.step_slug = s.step_slug
        where s.run_id = v_run_id and s.status in ('created', 'started') and s.step_slug in (select a.step_slug from affected a)
        order by s.step_slug
        for no key update of s
    ) x;
    if v_slugs is null or v_trigger <> all (v_slugs) then
        return 0;
    end if;

    update pgflow.step_states s
    set
        status = 'skipped',
        skipped_at = greatest(clock_timestamp(), s.created_at, s.started_at),
        remaining_tasks = null,
        skip_reason = case when s.step_slug = v_trigger then reason else 'dependency_skipped' end,
        error_message = case when s.step_slug = v_trigger then _skip_steps.error_message end
    where s.run_id = v_run_id and s.step_slug = any (v_slugs);
    get diagnostics v_count = row_count;

    select array_agg(x.queue_name), array_agg(x.message_id) into v_queues, v_messages
    from (
        select t.queue_name, t.message_id
        from pgflow.step_tasks t
        where t.run_id = v_run_id and t.step_slug = any (v_slugs) and t.status in ('queued', 'started')
        order by t.step_slug, t.task_index
        for no key update
    ) x;
    if v_messages is not null then
        update pgflow.step_tasks t
        set status = 'skipped'
        where t.run_id = v_run_id and t.step_slug = any (v_slugs) and t.status in ('queued', 'started');
        perform pgflow._archive_messages(v_queues, v_messages);
    end if;

    perform pgflow._settle_steps(array_fill(v_run_id, array[v_count]), v_slugs, 'step:skipped');
    return v_count;
end
$$;
